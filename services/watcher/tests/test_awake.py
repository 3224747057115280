"""A process that was asleep knows it before it says anything."""

from metaloop.common.testing.clock import FakeClock
from metaloop.watcher.awake import Awake
from metaloop.watcher.core.catchup import CATCH_UP_SECONDS


def test_who_begins_to_listen_late_distrusts_what_it_knows_for_a_while():
    clock = FakeClock()
    awake = Awake(clock)

    awake.distrust(before=clock())

    assert awake.is_behind()


def test_who_slept_is_behind_for_a_while_though_nobody_looked_before_it_was_asked():
    clock = FakeClock()
    awake = Awake(clock)
    clock.advance(0.2)
    assert not awake.is_behind()

    clock.advance(3.0)

    assert awake.is_behind()
    clock.advance(0.4)
    assert awake.is_behind()
    for _ in range(5):
        clock.advance(CATCH_UP_SECONDS / 4)
        awake.look()
    assert not awake.is_behind()
