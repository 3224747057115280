"""What all scenarios of a run share: its size, its calibration, and how measured values become figures."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from bench.calibration import Calibration
from bench.figures import Figure, Judged, Raw, without_ratio_bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One pass through the chosen scenarios."""

    assets: Path
    """The folder with the control plane's programs."""
    calibration: Calibration
    divisor: int = 1
    """1, or 10 in a quick run, which is judged by its exact counts alone."""
    profiles: Path | None = None
    """The folder that py-spy's samples of the services go to; None for no sampling."""

    def of(self, full_size: int) -> int:
        """A size in this run."""
        return max(1, full_size // self.divisor)

    def judge(self, row: Judged, value: float, *, raw: Raw | None = None) -> Figure:
        """The figure of a row; its ratio is judged only in a run of the size that the bounds are for."""
        figure = row.figure(value, raw=raw)
        return figure if self.divisor == 1 else without_ratio_bounds(figure)

    def judge_seconds(self, row: Judged, seconds: float) -> Figure:
        """A time, judged by how many creates the API server takes that long for."""
        return self.judge(row, self.calibration.creates_in(seconds), raw=Raw(value=seconds, unit="s"))

    def judge_cpu(self, row: Judged, cpu_seconds: float) -> Figure:
        """CPU time, judged by how many creates cost the API server and etcd as much."""
        return self.judge(row, self.calibration.creates_worth(cpu_seconds), raw=Raw(value=1_000 * cpu_seconds, unit="ms"))


Scenario: TypeAlias = Callable[[Run], Coroutine[None, None, list[Figure]]]
