"""How much CPU and memory each process has used, as the kernel counts it."""

import os
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from metaloop.devkit.processes import Daemon

SERVICES = ("watcher", "reconcilers", "hookgateway")
API_SERVER = "kube-apiserver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """CPU seconds and resident bytes by the name of the process; all reconcilers are summed up under one name."""

    cpu_seconds: Mapping[str, float]
    rss_bytes: Mapping[str, int]

    def since(self, earlier: "Usage") -> "Usage":
        """The CPU used since an earlier reading; the memory is the present one."""
        cpu = {name: seconds - earlier.cpu_seconds.get(name, 0.0) for name, seconds in self.cpu_seconds.items()}
        return Usage(cpu_seconds=cpu, rss_bytes=self.rss_bytes)

    @property
    def ours_cpu_seconds(self) -> float:
        """CPU of the three services together."""
        return sum(self.cpu_seconds[name] for name in SERVICES)


def usage_of(daemons: Sequence[Daemon]) -> Usage:
    """What these processes have used since each was last started."""
    cpu: dict[str, float] = {}
    rss: dict[str, int] = {}
    for daemon in daemons:
        name = "reconcilers" if daemon.name.startswith("reconciler") else daemon.name
        cpu[name] = cpu.get(name, 0.0) + daemon.cpu_seconds()
        rss[name] = rss.get(name, 0) + daemon.rss_bytes()
    return Usage(cpu_seconds=cpu, rss_bytes=rss)


def cpu_seconds(pid: int) -> float:
    """User and system time that a running process has used so far."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


BUSY_CORES = 0.2
"""If other processes keep more cores than this busy, times and CPU say little."""


class OtherProcessesCpu:
    """How busy other processes kept the machine. Figures that were taken beside much of it say little."""

    def __init__(self) -> None:
        """Count from now on."""
        self._started, self._others = time.monotonic(), _others_seconds()

    def cores(self) -> float:
        """The cores that others kept busy on average; correct once the processes that we started have ended."""
        return max(0.0, _others_seconds() - self._others) / (time.monotonic() - self._started)


def _others_seconds() -> float:
    """CPU seconds since boot that neither this process nor a child that it has waited for has used."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    idle, iowait = fields[3], fields[4]
    busy = (sum(fields[:8]) - idle - iowait) / os.sysconf("SC_CLK_TCK")
    ours = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return busy - sum(usage.ru_utime + usage.ru_stime for usage in ours)
