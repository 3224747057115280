"""What the kernel knows about a process: the CPU time and memory it used, when it started, and its descendants."""

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

# Places in /proc/PID/stat, counted from the field after the command's closing parenthesis (proc(5), field 3 = 0).
_UTIME, _STIME, _START_TIME = 11, 12, 19


def cpu_seconds(pid: int) -> float:
    """User and system time that a live process has used so far, without its children."""
    fields = _stat(pid)
    return (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS_PER_SECOND


def rss_bytes(pid: int) -> int:
    """Resident memory of a live process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES


def start_time(pid: int) -> str | None:
    """When a process was started, in ticks since boot: with its pid, it names one process for good. None if it is gone."""
    try:
        return _stat(pid)[_START_TIME]
    except (FileNotFoundError, ProcessLookupError):
        return None


def descendants(pid: int) -> list[int]:
    """Every live process below this one, parents before their children; empty where there is no /proc."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in file.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in children:
            found += [child, *descendants(child)]
    return found


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
