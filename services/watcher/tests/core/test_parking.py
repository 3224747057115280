"""Keys whose watches catch up are put off, and nobody waits for them."""

import pytest

from metaloop.common.job import JobKey
from metaloop.common.observation import Busy
from metaloop.common.testing.builders import job_key
from metaloop.watcher.core.entry import Lease, Stage
from metaloop.watcher.core.fair_queue import MarkClass

from .queues import QueueInHand

FROZEN = [job_key(f"p{index}", controller="frozen") for index in range(1000)]
FREE = job_key("p", controller="free")


@pytest.fixture
def hand() -> QueueInHand:
    return QueueInHand()


def frozen(hand: QueueInHand, *keys: JobKey) -> None:
    """Mark keys of a controller that is behind, and offer what may go."""
    hand.behind = {FROZEN[0].controller}
    for key in keys or (FROZEN[0],):
        hand.mark(key)
    assert hand.take_all() == []


def test_fresh_key_of_another_controller_passes_a_thousand_frozen_ones(hand: QueueInHand):
    frozen(hand, *FROZEN)
    for _ in range(30):
        hand.wait(1.0)
        hand.mark(FREE)

        assert hand.take_all() == [FREE]
        lease = hand.lease(FREE)
        hand.finish(lease, FREE)


def test_keys_that_were_offered_before_the_watch_broke_leave_the_window(hand: QueueInHand):
    for key in FROZEN:
        hand.mark(key)
    offered = hand.take_all()
    assert 0 < len(offered) < len(FROZEN)

    hand.behind = {FROZEN[0].controller}
    for key in offered:
        hand.queue.stored(key, now=hand.clock())
        hand.queue.refused(key, now=hand.clock())
    hand.mark(FREE)

    assert hand.take_all() == [FREE]


def test_frozen_keys_go_once_their_watches_have_caught_up(hand: QueueInHand):
    frozen(hand, *FROZEN[:5])
    assert hand.queue.waiting == 5

    hand.behind.clear()
    hand.wait(0.2)

    assert set(hand.take_all()) == set(FROZEN[:5])


def test_frozen_keys_cost_no_wakeup_once_they_are_gone(hand: QueueInHand):
    frozen(hand)
    assert hand.queue.next_wakeup() is not None

    hand.queue.forget(FROZEN[0])

    assert hand.queue.next_wakeup() is None
    assert hand.queue.waiting == 0


def test_frozen_key_that_is_marked_again_goes_by_its_stronger_mark(hand: QueueInHand):
    frozen(hand)

    hand.mark(FROZEN[0], MarkClass.NEW, "it is new")

    assert hand.entry(FROZEN[0]).stage is Stage.PARKED
    hand.behind.clear()
    hand.wait(0.2)
    job = hand.take()
    assert job is not None
    assert job.reason == "it is new"


def test_frozen_key_counts_for_no_limit_of_its_controller(hand: QueueInHand):
    hand.queue.set_controller(FROZEN[0].controller, resync_seconds=None, max_concurrent=2, now=hand.clock())
    frozen(hand, *FROZEN[:5])

    hand.behind.clear()
    hand.wait(0.2)

    assert len(hand.take_all()) == 2


def test_claim_of_a_frozen_key_by_an_old_job_is_granted_once_it_has_caught_up(hand: QueueInHand):
    frozen(hand)
    hand.behind.clear()

    assert isinstance(hand.claim(FROZEN[0]), Lease)
    hand.wait(0.2)

    assert hand.take_all() == []
    assert hand.queue.waiting == 0


def test_forgotten_controller_leaves_nothing_parked(hand: QueueInHand):
    frozen(hand, *FROZEN[:5])

    hand.queue.forget_controller(FROZEN[0].controller)

    assert hand.queue.waiting == 0
    assert list(hand.queue.entries()) == []


def test_key_that_is_blocked_is_busy_even_where_it_is_parked(hand: QueueInHand):
    frozen(hand)
    hand.queue.block(FROZEN[0].controller)

    assert isinstance(hand.claim(FROZEN[0]), Busy)
