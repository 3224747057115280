"""The stall detector notices a stall before anything else is said."""

from metaloop.common.testing.clock import FakeClock
from metaloop.watcher.core.catch_up import CATCH_UP_SECONDS
from metaloop.watcher.stall_detector import StallDetector


def test_an_assumed_stall_leaves_the_process_behind_for_a_while():
    clock = FakeClock()
    detector = StallDetector(clock)

    detector.assume_stalled(until=clock())

    assert detector.is_behind()


def test_a_stall_leaves_the_process_behind_even_before_the_next_beat():
    clock = FakeClock()
    detector = StallDetector(clock)
    clock.advance(0.2)
    assert not detector.is_behind()

    clock.advance(3.0)

    assert detector.is_behind()
    clock.advance(0.4)
    assert detector.is_behind()
    for _ in range(5):
        clock.advance(CATCH_UP_SECONDS / 4)
        detector.beat()
    assert not detector.is_behind()
