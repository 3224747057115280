"""How much CPU and memory each process of a run has used, by the kernel's count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metaloop.devkit.processes import Daemon

SERVICES = ("watcher", "reconcilers", "hookgateway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """CPU seconds and resident bytes by the name of the part; the reconcilers are one part."""

    cpu_seconds: Mapping[str, float]
    rss_bytes: Mapping[str, int]

    def since(self, earlier: "Usage") -> "Usage":
        """The CPU used since an earlier reading; memory is as it is now."""
        cpu = {name: seconds - earlier.cpu_seconds.get(name, 0.0) for name, seconds in self.cpu_seconds.items()}
        return Usage(cpu_seconds=cpu, rss_bytes=self.rss_bytes)

    @property
    def ours_cpu_seconds(self) -> float:
        """That of the three services together."""
        return sum(self.cpu_seconds[name] for name in SERVICES)


def usage_of(daemons: Sequence[Daemon]) -> Usage:
    """What these processes have used in their present lives."""
    cpu: dict[str, float] = {}
    rss: dict[str, int] = {}
    for daemon in daemons:
        name = "reconcilers" if daemon.name.startswith("reconciler") else daemon.name
        cpu[name] = cpu.get(name, 0.0) + daemon.cpu_seconds()
        rss[name] = rss.get(name, 0) + daemon.rss_bytes()
    return Usage(cpu_seconds=cpu, rss_bytes=rss)
