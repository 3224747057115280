"""When a key is retried after a sync, by how the sync ended, and when it is resynced without a change."""

from typing import NamedTuple
from zlib import crc32

from metaloop.common.job import JobKey
from metaloop.common.report import SyncReport

_FIRST_SECONDS = 0.005
LONGEST_SECONDS = 1000.0
_DOUBLINGS_TO_LONGEST = 18
_RESYNC_JITTER = 0.1
GRID = 10
"""Timers that can wait a moment fire at whole tenths of a second: this many grid points a second."""


class Next(NamedTuple):
    """How many syncs have failed in a row, and the time until the next try; None where none is due."""

    failures: int
    wait_seconds: float | None


def backoff_seconds(failures: int) -> float:
    """The wait after so many failures in a row: 5 ms after the first, doubled with each, at most 1000 s."""
    if failures > _DOUBLINGS_TO_LONGEST:
        return LONGEST_SECONDS
    return min(_FIRST_SECONDS * 2 ** max(0, failures - 1), LONGEST_SECONDS)


def try_after(report: SyncReport | None, *, failures: int) -> Next:
    """What follows from a report. A sync without a report counts as failed.

    A throttled sync is no failure if the webhook said how long to wait; if it did not, the wait must grow.
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
    """The time of the next resync: up to ten percent early or late, so that not all keys are resynced at once.

    Each part of a parent has its own place in the period, since thousands of them are marked at once.
    """
    if key.part:
        wait = (period_seconds * crc32(str(key).encode()) / 2**32 - now) % period_seconds
        # The timer may fire a moment early, at a grid point: that is this period's resync, and not the last one's.
        return round((now + wait + (period_seconds if wait < 1 / GRID else 0.0)) * GRID) / GRID
    spread = crc32(f"{key} {int(now)}".encode()) / 2**31 - 1.0
    # Resyncs go in batches of a tenth of a second: to wake up once for many jobs nearly halves the CPU.
    return round((now + period_seconds * (1.0 + _RESYNC_JITTER * spread)) * GRID) / GRID
