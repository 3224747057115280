"""Latencies in round trips: a percentile of them, beside the same percentile of the change that caused each."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.figures import Figure, Judged, Raw
from bench.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentile:
    """A share of all changes, and what the round trip of a change was for that share."""

    percent: int
    round_trip: float
    """In seconds."""

    @staticmethod
    def of(round_trips: Sequence[float], percent: int) -> "Percentile":
        """The percentile of round trips in seconds."""
        return Percentile(percent=percent, round_trip=percentile(round_trips, percent))

    def judge(self, run: Run, row: Judged, seconds: Sequence[float]) -> Figure:
        """The same percentile of other times, in round trips."""
        value = percentile(seconds, self.percent)
        return run.judge(row, value / self.round_trip, raw=Raw(value=1_000 * value, unit="ms"))

    @property
    def figure(self) -> Figure:
        """The round trip itself."""
        return Figure(name=f"round trip of a change, p{self.percent}", value=1_000 * self.round_trip, unit="ms")


def percentile(seconds: Sequence[float], percent: int) -> float:
    """The value that so many percent do not exceed. Raises IndexError for no values."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
