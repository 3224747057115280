"""What the queue counts of each controller."""

from math import inf

from metaloop.common.distribution import Distribution
from metaloop.watcher.core.fair_queue import MarkClass
from metaloop.watcher.core.queue_counts import ControllerQueueCounts

from .queues import KEY, QueueInHand


def numbers_of(hand: QueueInHand) -> ControllerQueueCounts:
    return hand.queue.flows[KEY.controller].numbers


def at_most(distribution: Distribution, seconds: float) -> int:
    """How many observations are not above this bound."""
    return dict(distribution.cumulative())[seconds]


def test_marks_of_a_key_that_waits_are_one_add():
    hand = QueueInHand()

    hand.mark()
    hand.mark(klass=MarkClass.NEW)

    assert numbers_of(hand).adds == 1


def test_mark_of_a_leased_key_is_another_add():
    hand = QueueInHand()
    hand.leased()

    hand.mark()
    hand.mark()

    assert numbers_of(hand).adds == 2


def test_time_from_the_first_mark_to_the_claim_is_observed():
    hand = QueueInHand()
    hand.mark()
    hand.wait(2.0)
    hand.mark()
    hand.wait(1.0)

    hand.take_all()
    hand.lease()

    waited = numbers_of(hand).waited
    assert (waited.count, waited.sum) == (1, 3.0)


def test_time_from_the_claim_to_the_end_is_observed():
    hand = QueueInHand()
    lease = hand.leased()
    hand.wait(0.2)

    hand.finish(lease)

    worked = numbers_of(hand).worked
    assert (at_most(worked, 0.1), at_most(worked, 0.25), at_most(worked, inf)) == (0, 1, 1)


def test_lease_that_expires_is_not_observed_as_work():
    hand = QueueInHand()
    hand.leased()

    hand.wait(60.0)

    assert numbers_of(hand).worked.count == 0


def test_failed_sync_is_a_retry_and_a_successful_one_is_not():
    hand = QueueInHand()

    hand.finish(hand.leased())
    hand.finish(hand.leased(), result="retry")

    assert numbers_of(hand).retries == 1


def test_numbers_of_a_removed_controller_are_forgotten():
    hand = QueueInHand()
    hand.finish(hand.leased())

    hand.queue.forget_controller(KEY.controller)

    assert hand.queue.flows == {}
