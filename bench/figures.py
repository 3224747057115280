"""Measured figures, the bounds on them, and whether they hold. Nothing here measures, prints or reads a file.

Rules:

1. A bound is a ratio to something measured in the same run, or an exact count. Machines differ by a factor of two from
   hour to hour, so a bound in seconds would be held or missed by the machine.
2. The seconds behind a ratio are printed beside it (`Figure.raw`) and never judged.
3. Of several runs, a ratio is judged by the median. An exact count must hold in every run.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, assert_never

Verdict: TypeAlias = Literal["holds", "misses", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost:
    """A ratio that must not be larger than `limit`."""

    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AtLeast:
    """A ratio that must not be smaller than `limit`."""

    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Exactly:
    """A count, or a count per parent, that must not move at all."""

    count: float


Bound: TypeAlias = AtMost | AtLeast | Exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """What was read off the clock or the process table before it became a ratio."""

    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number. Without a bound it is printed and recorded, but not judged."""

    name: str
    value: float
    unit: str = ""
    bound: Bound | None = None
    raw: Raw | None = None
    is_compared: bool = True
    """Whether it is compared with earlier results; not so if it describes the machine."""
    runs: tuple[float, ...] = ()
    """The values of the single runs that `value` summarizes; empty for a single run."""

    @property
    def verdict(self) -> Verdict:
        """Whether the bound holds; empty without a bound."""
        if self.bound is None:
            return ""
        return "holds" if is_within(self.bound, self.value) else "misses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A row of the table of bounds: what is measured, in which unit, and its bound."""

    name: str
    unit: str = ""
    bound: Bound

    def figure(self, value: float, *, raw: Raw | None = None) -> Figure:
        """The figure that a run measured for this row."""
        return Figure(name=self.name, value=value, unit=self.unit, bound=self.bound, raw=raw)


def is_within(bound: Bound, value: float) -> bool:
    """Whether `value` keeps the bound. Counts are compared without any tolerance."""
    match bound:
        case AtMost(limit=limit):
            return value <= limit
        case AtLeast(limit=limit):
            return value >= limit
        case Exactly(count=count):
            return value == count
    assert_never(bound)


def bound_text(bound: Bound | None) -> str:
    """The bound as it is printed: `<= 5`, `>= 5`, `= 5`, or empty."""
    match bound:
        case None:
            return ""
        case AtMost(limit=limit):
            return f"<= {limit:,g}"
        case AtLeast(limit=limit):
            return f">= {limit:,g}"
        case Exactly(count=count):
            return f"= {count:,g}"
    assert_never(bound)


def without_ratio_bounds(figure: Figure) -> Figure:
    """The figure as a run of another size than the bounds are for judges it: by exact counts alone."""
    return figure if isinstance(figure.bound, Exactly) else replace(figure, bound=None)


def summary_of(runs: Sequence[Sequence[Figure]]) -> list[Figure]:
    """One figure for each that the runs of a scenario have in common, in the order of the first run.

    The value is the median of the runs, or for an exact count the first one that misses it. Raises ValueError for runs
    that measured different figures.
    """
    if len(runs) == 1:
        return list(runs[0])
    return [_summary(same) for same in zip(*runs, strict=True)]


def _summary(runs: Sequence[Figure]) -> Figure:
    first = runs[0]
    if any((run.name, run.unit) != (first.name, first.unit) for run in runs):
        raise ValueError(f"runs of one scenario measured different figures: {sorted({run.name for run in runs})}")
    values = tuple(run.value for run in runs)
    return replace(first, value=_representative(first.bound, values), raw=_median_raw(runs), runs=values)


def _representative(bound: Bound | None, values: Sequence[float]) -> float:
    if isinstance(bound, Exactly):
        return next((value for value in values if value != bound.count), bound.count)
    return statistics.median(values)


def _median_raw(runs: Sequence[Figure]) -> Raw | None:
    raws = [run.raw for run in runs if run.raw is not None]
    return Raw(value=statistics.median(raw.value for raw in raws), unit=raws[0].unit) if raws else None
