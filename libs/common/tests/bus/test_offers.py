"""Conformance: jobs are queued once, and again once they are out of the stream."""

import pytest

from metaloop.common.bus.links import WorkerLink
from metaloop.common.bus.messages import OfferOutcome
from metaloop.common.testing.builders import job, job_key
from metaloop.common.testing.polling import eventually

from .hands import Watcher, pulling
from .subject import BusUnderTest

QUEUED, REFUSED, UNKNOWN = OfferOutcome.QUEUED, OfferOutcome.ALREADY_QUEUED, OfferOutcome.UNKNOWN


async def test_a_job_is_queued_once(watcher: Watcher):
    assert await watcher.offer(job(), job()) == [QUEUED, REFUSED]


async def test_different_keys_do_not_stand_in_one_anothers_way(watcher: Watcher):
    assert set(await watcher.offer(*map(job, ("a", "b", "a.b", "a b", "a*", "a>")))) == {QUEUED}


async def test_parts_of_one_parent_are_different_keys(watcher: Watcher):
    whole = job()
    part = type(whole)(key=whole.key._replace(part="uid"), shard=whole.shard)

    assert await watcher.offer(whole, part, part) == [QUEUED, QUEUED, REFUSED]


async def test_a_job_in_a_workers_hands_is_still_queued(watcher: Watcher, worker: WorkerLink):
    await watcher.queue("a")
    async with pulling(worker) as hands:
        await hands.next()

        assert await watcher.offer(job("a")) == [REFUSED]


async def test_a_key_can_be_queued_again_as_soon_as_its_receipt_is_there(watcher: Watcher, worker: WorkerLink):
    """The receipt is the server's, sent when the stream no longer holds the job: however often, no offer after it is
    refused.
    """
    async with pulling(worker) as hands:
        for turn in range(20):
            assert await watcher.offer(job("a")) == [QUEUED], turn
            await (await hands.next()).finish(lease=f"lease-{turn}")
            await eventually(lambda turn=turn: watcher.receipts == [f"lease-{turn}"])
            watcher.receipts.clear()


async def test_no_receipt_comes_for_a_job_that_is_only_in_hand(watcher: Watcher, worker: WorkerLink):
    await watcher.queue("a", "b")
    async with pulling(worker) as hands:
        await hands.next()
        await (await hands.next()).finish(lease="second")

        await eventually(lambda: watcher.receipts == ["second"])


async def test_a_job_that_is_finished_without_a_lease_needs_no_receipt(watcher: Watcher, worker: WorkerLink):
    await watcher.queue("a", "b")
    async with pulling(worker) as hands:
        await (await hands.next()).finish(lease="")
        await (await hands.next()).finish(lease="b")
        await eventually(lambda: bool(watcher.receipts))

        assert await watcher.offer(job("a"), job("b")) == [QUEUED, QUEUED]
        assert watcher.receipts == ["b"]


async def test_a_cleared_shard_has_no_jobs_and_others_keep_theirs(bus: BusUnderTest, watcher: Watcher):
    async with Watcher(bus.watcher_of("other")).serving() as other:
        await watcher.queue("a", "b")
        await other.offer(job("a", shard="other"))

        await watcher.link.clear_stream()

        assert await watcher.offer(job("a")) == [QUEUED]
        assert await other.offer(job("a", shard="other")) == [REFUSED]


async def test_ensuring_a_stream_that_is_there_keeps_its_jobs(bus: BusUnderTest, watcher: Watcher):
    await watcher.queue("a")

    await watcher.link.ensure_stream()
    await bus.other_watcher.ensure_stream()

    assert await watcher.offer(job("a")) == [REFUSED]


async def test_an_offer_without_a_broker_has_an_unknown_outcome_at_once(bus: BusUnderTest, watcher: Watcher):
    await bus.stop()

    await watcher.link.offer(job())

    assert watcher.outcomes == [(job_key(), UNKNOWN)]


async def test_an_offer_without_a_stream_has_an_unknown_outcome(bus: BusUnderTest, watcher: Watcher):
    await bus.wipe()

    assert await watcher.offer(job()) == [UNKNOWN]


async def test_queued_jobs_live_through_a_crash(bus: BusUnderTest, watcher: Watcher):
    await watcher.queue("a")

    await bus.stop()
    await bus.restart()

    assert await watcher.offer(job("a")) == [REFUSED]


async def test_a_stream_that_was_lost_can_be_made_again_without_its_jobs(bus: BusUnderTest, watcher: Watcher):
    await watcher.queue("a")

    await bus.wipe()
    await watcher.link.ensure_stream()

    assert await watcher.offer(job("a")) == [QUEUED]


async def test_jobs_are_offered_only_while_the_handler_is_served(bus: BusUnderTest):
    async with Watcher(bus.watcher).serving() as watcher:
        await watcher.queue("a")

    with pytest.raises(RuntimeError):
        await bus.watcher.offer(job("b"))


async def test_a_watcher_that_serves_again_hears_of_its_own_offers_only(bus: BusUnderTest):
    async with Watcher(bus.watcher).serving() as first:
        await bus.watcher.offer(job("a"))
    async with Watcher(bus.watcher).serving() as second:
        await second.offer(job("b"))

    assert {key for key, _ in first.outcomes} <= {job_key("a")}
    assert [key for key, _ in second.outcomes] == [job_key("b")]
