"""Figures beside the last recorded result of the same scenario, or beside those of another checkout. Reads no file."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from bench.figures import Figure

FigureId: TypeAlias = tuple[str, str]
"""Name and unit: a figure that is measured in another unit is another figure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The results of one invocation, as far as they are compared with."""

    date: datetime
    quick: bool
    """Whether it was of a smaller size, and so is no measure for a run of full size."""
    scenarios: Mapping[str, Mapping[FigureId, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """The last recorded result of one scenario."""

    date: datetime
    figures: Mapping[FigureId, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeAndAfter:
    """One figure of two checkouts: its values in the runs of each, of which the medians are compared."""

    name: str
    unit: str
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def ratio(self) -> float | None:
        """The median after, in times the median before; None where that is 0."""
        before = statistics.median(self.before)
        return statistics.median(self.after) / before if before else None


def figure_id(figure: Figure) -> FigureId:
    """What a figure is found by in a record."""
    return figure.name, figure.unit


def last_of(scenario: str, records: Sequence[Record]) -> Last | None:
    """The newest result of the scenario that a run of full size recorded; None if there is none."""
    found = [record for record in records if scenario in record.scenarios and not record.quick]
    newest = max(found, key=lambda record: record.date, default=None)
    return Last(date=newest.date, figures=newest.scenarios[scenario]) if newest else None


def column(figures: Sequence[Figure], last: Last | None) -> list[str]:
    """The column `now/last`, one entry a figure: a ratio, `=` for equal values, `-` where nothing was recorded."""
    return [_entry(figure, last) for figure in figures]


def _entry(figure: Figure, last: Last | None) -> str:
    if not figure.is_compared:
        return ""
    now, then = figure.value, last.figures.get(figure_id(figure)) if last else None
    if then is None:
        return "-"
    if now == then:
        return "="
    return f"{now / then:.2f}" if then else "was 0"


def before_and_after(before: Sequence[Record], after: Sequence[Record], scenario: str) -> list[BeforeAndAfter]:
    """The figures of a scenario that all records have, in the order of the first one."""
    runs_before, runs_after = ([record.scenarios[scenario] for record in records] for records in (before, after))
    common = [figure for figure in runs_before[0] if all(figure in run for run in (*runs_before, *runs_after))]
    return [
        BeforeAndAfter(
            name=figure[0],
            unit=figure[1],
            before=tuple(run[figure] for run in runs_before),
            after=tuple(run[figure] for run in runs_after),
        )
        for figure in common
    ]
