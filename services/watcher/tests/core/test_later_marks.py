"""Marks that can wait: what touches a key meanwhile costs no other run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.job import JobKey
from metaloop.common.testing.builders import job_key
from metaloop.watcher.core.backoff import resync_due
from metaloop.watcher.core.fair_queue import MarkClass

from .queues import KEY, QueueInHand


def mark_later(hand: QueueInHand, key: JobKey = KEY) -> None:
    hand.queue.mark_later(key, quiet_seconds=1.0, within_seconds=10.0, now=hand.clock())


def is_marked(hand: QueueInHand, key: JobKey = KEY) -> bool:
    entry = hand.queue.entry(key)
    return entry is not None and entry.mark is not None


def run(hand: QueueInHand) -> None:
    """The key is marked, if it is not yet, and synced."""
    hand.finish(hand.leased())


def test_key_runs_once_the_time_is_over():
    hand = QueueInHand()

    mark_later(hand)
    hand.wait(0.9)
    before = is_marked(hand)
    hand.wait(0.2)

    assert (before, is_marked(hand)) == (False, True)


def test_second_touch_puts_the_run_off():
    hand = QueueInHand()
    mark_later(hand)
    hand.wait(0.9)

    mark_later(hand)
    hand.wait(0.9)
    before = is_marked(hand)
    hand.wait(0.2)

    assert (before, is_marked(hand)) == (False, True)


def test_key_that_is_touched_all_the_time_runs_within_the_longest_time():
    hand, ran = QueueInHand(), list[float]()
    began = hand.clock()

    for _ in range(70):
        mark_later(hand)
        hand.wait(0.5)
        if is_marked(hand):
            ran.append(hand.clock() - began)
            run(hand)

    assert ran == pytest.approx([10.0, 20.0, 30.0], abs=0.6)


def test_time_of_a_run_that_came_before_is_not_counted():
    hand = QueueInHand()
    mark_later(hand)
    hand.wait(9.5)
    run(hand)

    for _ in range(3):
        mark_later(hand)
        hand.wait(0.5)

    assert not is_marked(hand)


def test_run_that_comes_before_answers_the_touch():
    hand = QueueInHand()
    mark_later(hand)

    hand.mark(klass=MarkClass.CHANGED)
    hand.take()
    hand.queue.claim(KEY, worker="w", now=hand.clock())
    hand.wait(2.0)

    assert not is_marked(hand)


def test_key_that_is_forgotten_does_not_run():
    hand = QueueInHand()
    mark_later(hand)

    hand.queue.forget(KEY)
    hand.wait(2.0)

    assert hand.queue.entry(KEY) is None


def test_resyncs_of_parts_are_spread_over_the_period():
    dues = [resync_due(job_key()._replace(part=f"part-{number}"), period_seconds=100.0, now=5000.0) - 5000.0 for number in range(1000)]

    in_tenths = [sum(tenth * 10 <= due < (tenth + 1) * 10 for due in dues) for tenth in range(10)]
    assert all(50 <= count <= 200 for count in in_tenths)
    assert all(0 < due <= 100.2 for due in dues)


@given(st.text(), st.floats(0, 1e6), st.integers(1, 10_000), st.floats(0, 0.5))
def test_part_is_resynced_once_in_each_period(part: str, now: float, period: int, took: float):
    key = job_key()._replace(part=f"part{part}")

    first = resync_due(key, period_seconds=float(period), now=now)
    second = resync_due(key, period_seconds=float(period), now=first + took)

    assert now < first <= now + period + 0.2
    assert second - first == pytest.approx(period, abs=0.7)
