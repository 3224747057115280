"""When a key is tried again after a sync, by how the sync ended; and when it is resynced though nothing happened."""

from typing import NamedTuple
from zlib import crc32

from metaloop.common.job import JobKey
from metaloop.common.report import SyncReport

_FIRST_SECONDS = 0.005
LONGEST_SECONDS = 1000.0
_DOUBLINGS_TO_LONGEST = 18
_RESYNC_JITTER = 0.1
GRID = 10
"""What can wait a moment happens at whole tenths of a second."""


class Next(NamedTuple):
    """How many syncs failed in a row now, and how long until the next try; None where none is due."""

    failures: int
    wait_seconds: float | None


def backoff_seconds(failures: int) -> float:
    """The wait after so many failures in a row: 5 ms after the first, doubled with each, and never above 1000 s."""
    if failures > _DOUBLINGS_TO_LONGEST:
        return LONGEST_SECONDS
    return min(_FIRST_SECONDS * 2 ** max(0, failures - 1), LONGEST_SECONDS)


def try_after(report: SyncReport | None, *, failures: int) -> Next:
    """What follows from a report; a sync that nobody reported on counts as failed.

    A throttled sync didn't fail where the webhook said for how long to stay away; where it didn't say, the wait must grow.
    """
    match report.result if report else "retry":
        case "done":
            return Next(0, None)
        case "rejected":
            return Next(failures + 1, LONGEST_SECONDS)
        case "throttled" if report is not None and report.after_seconds is not None:
            return Next(failures, report.after_seconds)
        case _:
            longest = LONGEST_SECONDS if report is None or report.after_seconds is None else report.after_seconds
            return Next(failures + 1, min(backoff_seconds(failures + 1), longest))


def resync_due(key: JobKey, *, period_seconds: float, now: float) -> float:
    """The time of the next resync: ten percent early or late, each key by its own, so that they don't all come at once."""
    spread = crc32(f"{key} {int(now)}".encode()) / 2**31 - 1.0
    # The keys of a tenth of a second go together: every process on the way wakes up once for many jobs, and each costs nearly half the CPU.
    return round((now + period_seconds * (1.0 + _RESYNC_JITTER * spread)) * GRID) / GRID
