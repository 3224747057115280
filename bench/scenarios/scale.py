"""How large a run is: the sizes that the bounds are for, or a tenth of them to see that all works."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from bench.figures import Bound, Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """What all scenarios of a run have in common."""

    assets: Path
    divisor: int = 1
    """1, or 10 in a quick run, whose figures have no bound."""
    profiles: Path | None = None
    """Where samples of what the services do are kept; they are not sampled without it."""

    def of(self, full_size: int) -> int:
        """A size in this run."""
        return max(1, full_size // self.divisor)

    def judge(self, bound: Bound, value: float) -> Figure:
        """A measured row: judged where the run has the size that the bound is for."""
        figure = bound.measured(value)
        return figure if self.divisor == 1 else Figure(name=figure.name, value=value, unit=figure.unit, original=figure.original)


Scenario: TypeAlias = Callable[[Scale], Coroutine[None, None, list[Figure]]]
