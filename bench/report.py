"""Prints figures: each beside its bound, the seconds behind it, and its change since the last recorded result."""

import os
import statistics
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.calibration import Calibration
from bench.comparison import BeforeAndAfter, Last, column
from bench.figures import Figure, Raw, bound_text

_RIGHT = {"measured", "bound", "raw", "now/last", "lowest", "highest", "before", "after", "after/before"}


def show(title: str, figures: Sequence[Figure], *, last: Last | None) -> None:
    """Print the figures of a scenario, of a single run or the summary of several."""
    has_runs = any(figure.runs for figure in figures)
    caption = f"{title} (last recorded {last.date:%Y-%m-%d %H:%M})" if last else title
    table = _table(caption, ("figure", "measured", *(("lowest", "highest") if has_runs else ()), "bound", "raw", "now/last", ""))
    for figure, change in zip(figures, column(figures, last), strict=True):
        spread = (_number(min(figure.runs)), _number(max(figure.runs))) if has_runs else ()
        bound, raw = bound_text(figure.bound), _raw_text(figure.raw)
        table.add_row(figure.name, f"{_number(figure.value)} {figure.unit}", *spread, bound, raw, change, figure.verdict)
    _console().print(table)


def show_comparison(title: str, rows: Sequence[BeforeAndAfter]) -> None:
    """Print the medians of two checkouts side by side, each with its lowest and highest run."""
    table = _table(title, ("figure", "before", "after", "after/before"))
    for row in rows:
        ratio = "-" if row.ratio is None else f"{row.ratio:.3f}"
        table.add_row(f"{row.name} ({row.unit})" if row.unit else row.name, _spread(row.before), _spread(row.after), ratio)
    _console().print(table)


def calibration_text(calibration: Calibration) -> str:
    """The calibration in one line."""
    cpu = 1_000 * calibration.create_cpu_seconds
    return f"calibration: {calibration.creates_per_second:.0f} creates a second, {cpu:.2f} ms CPU of API server and etcd each"


def steadiness_text(first: Calibration, later: Calibration) -> str:
    """How much the machine changed in the course of a run, and what that means for the ratios."""
    change = f"calibration at the end: {100 * first.change_to(later):+.0f} % creates a second"
    return change if first.is_steady(later) else f"{change}; the machine changed too much, the ratios to creates say little"


def busy_text(cores: float) -> str:
    """What it means for the figures that other processes kept so many cores busy."""
    return f"other processes kept {cores:.1f} cores busy meanwhile: exact counts are sound, times and CPU say little"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.4g}"


def _spread(values: Sequence[float]) -> str:
    return f"{_number(statistics.median(values))} ({_number(min(values))}-{_number(max(values))})"


def _raw_text(raw: Raw | None) -> str:
    return f"{_number(raw.value)} {raw.unit}" if raw else ""


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in _RIGHT else "left", overflow="fold")
    return table


def _console() -> Console:
    return Console(width=None if os.isatty(1) else 160)
