"""When a key is tried again after a sync, by how the sync ended."""

from typing import NamedTuple

from metaloop.common.report import SyncReport

_FIRST_SECONDS = 0.005
LONGEST_SECONDS = 1000.0
_DOUBLINGS_TO_LONGEST = 18


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
