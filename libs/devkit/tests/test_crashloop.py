"""Which crashes say that starting a program again makes no sense."""

import signal

import pytest

from metaloop.devkit.crashloop import CrashHistory

CRASHED = 1
KILLED = -signal.SIGKILL


def history(*times: float, exit_code: int = CRASHED, was_ready: bool = True) -> CrashHistory:
    recorded = CrashHistory(limit=5, within_seconds=30)
    for now in times:
        recorded.record(exit_code, was_ready=was_ready, now=now)
    return recorded


@pytest.mark.parametrize(
    ("times", "is_crash_loop"),
    [
        ([], False),
        ([0, 1, 2, 3], False),
        ([0, 1, 2, 3, 4], True),
        ([0, 10, 20, 30, 40], False),
        ([0, 10, 32, 33, 34, 35, 36], True),
    ],
)
def test_five_crashes_within_thirty_seconds_are_a_crash_loop(times: list[float], is_crash_loop: bool) -> None:
    assert history(*times).is_crash_loop is is_crash_loop


def test_sigkills_of_a_ready_program_are_not_counted() -> None:
    assert not history(*range(100), exit_code=KILLED).is_crash_loop


def test_sigkills_of_a_program_that_was_never_ready_are_counted() -> None:
    assert history(*range(5), exit_code=KILLED, was_ready=False).is_crash_loop


def test_each_recent_crash_doubles_the_backoff() -> None:
    backoffs = [history(*range(count)).backoff_seconds for count in range(4)]

    assert backoffs == [0.1, 0.2, 0.4, 0.8]
