"""The units that times and CPU are judged in: what the API server needs on this machine, in this run.

- `creates`: how many ConfigMaps the API server would have created, without us, in the same time.
- `creates' CPU`: how many creates the API server and etcd would have spent the same CPU on.

A third unit needs no calibration: the CPU of kube-apiserver during the same scenario (`bench.cost`).
"""

from dataclasses import dataclass

STEADY = 0.15
"""Two calibrations of one run that differ by more than this say that the machine changed meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What one create of a ConfigMap takes when nothing of ours runs."""

    creates_per_second: float
    """As many as one load process gets answered, with `bench.load.CLIENTS` requests in flight."""
    create_cpu_seconds: float
    """CPU of kube-apiserver and etcd for one create."""

    def creates_in(self, seconds: float) -> float:
        """A time, in creates."""
        return seconds * self.creates_per_second

    def creates_worth(self, cpu_seconds: float) -> float:
        """CPU time, in the CPU of creates."""
        return cpu_seconds / self.create_cpu_seconds

    def change_to(self, later: "Calibration") -> float:
        """By which share the machine became faster (or slower, below 0) until a later calibration of the same run."""
        return later.creates_per_second / self.creates_per_second - 1

    def is_steady(self, later: "Calibration") -> bool:
        """Whether ratios to this calibration were still sound at the time of the later one."""
        return abs(self.change_to(later)) <= STEADY
