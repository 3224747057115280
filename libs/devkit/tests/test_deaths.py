"""Which deaths say that a program had better not be started again."""

import signal

import pytest

from metaloop.devkit.deaths import Deaths

CRASH = 1
KILLED = -signal.SIGKILL


def deaths(*times: float, code: int = CRASH, was_ready: bool = True) -> Deaths:
    recorded = Deaths(limit=5, within_seconds=30)
    for now in times:
        recorded.record(code, was_ready=was_ready, now=now)
    return recorded


@pytest.mark.parametrize(
    ("times", "too_many"),
    [
        ([], False),
        ([0, 1, 2, 3], False),
        ([0, 1, 2, 3, 4], True),
        ([0, 10, 20, 30, 40], False),
        ([0, 10, 32, 33, 34, 35, 36], True),
    ],
)
def test_five_deaths_within_thirty_seconds_are_too_many(times: list[float], too_many: bool) -> None:
    assert deaths(*times).too_many is too_many


def test_sigkills_of_a_program_that_served_never_add_up() -> None:
    assert not deaths(*range(100), code=KILLED).too_many


def test_sigkills_of_a_program_that_never_got_to_serve_do_add_up() -> None:
    assert deaths(*range(5), code=KILLED, was_ready=False).too_many


def test_each_recent_death_doubles_the_pause_before_the_next_start() -> None:
    pauses = [deaths(*range(count)).pause_seconds for count in range(4)]

    assert pauses == [0.1, 0.2, 0.4, 0.8]
