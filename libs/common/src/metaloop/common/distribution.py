"""Counts observations by size, for a histogram that is exported when somebody scrapes it.

An observation costs a search in a short tuple and two additions, so that it can be made for every unit of work.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds from a request on loopback to the longest timeout."""


class Distribution:
    """How many observations there were up to each of some upper bounds, and their sum."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.sum = 0.0
        """The sum of all observations."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        """How many lie between the bound before and each bound. The last count is that of the larger ones."""

    def observe(self, value: float) -> None:
        """Count an observation."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many observations there were."""
        return sum(self._counts)

    def cumulative(self) -> Iterator[tuple[float, int]]:
        """Each upper bound with how many observations are not above it. The last bound is infinite."""
        return zip((*self._bounds, float("inf")), accumulate(self._counts), strict=True)

    def quantile(self, share: float) -> float:
        """The bound below which this share of the observations lies; infinite for one among the largest, 0 for none."""
        wanted = share * self.count
        return next((bound for bound, count in self.cumulative() if count >= wanted), 0.0) if self.count else 0.0
