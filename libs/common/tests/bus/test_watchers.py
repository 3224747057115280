"""Conformance: what watchers ask workers at the beginning of a term, and what they ask and tell one another."""

import pytest

from metaloop.common.bus.links import WatcherLink, WorkerLink
from metaloop.common.bus.messages import HeldLease, Presence, PresenceRank, Renewal
from metaloop.common.errors import NobodyThere, Unavailable
from metaloop.common.testing.builders import SHARD, controller_id, job_key
from metaloop.common.testing.polling import eventually

from .subject import BusUnderTest

HELD = Renewal(worker="worker", free_slots=5, leases=[HeldLease(job_key("a"), "e-1")])
OTHER = Renewal(worker="other", free_slots=0, leases=[])
CONTROLLER = controller_id()


async def test_all_workers_tell_what_they_hold_in_the_shard(bus: BusUnderTest):
    asked: list[str] = []

    def held_in(shard: str) -> Renewal:
        asked.append(shard)
        return HELD

    async with bus.worker.answering_held(held_in), bus.other_worker.answering_held(lambda _: OTHER):
        await bus.worker.check()
        await bus.other_worker.check()
        answers = await bus.watcher.held_leases(wait_seconds=1.5)

    assert sorted(answers, key=lambda each: each.worker) == [OTHER, HELD]
    assert asked == [SHARD]


async def test_a_shard_is_told_as_it_is_called(bus: BusUnderTest):
    """Names of shards hold slashes, dots and label selectors."""
    asked: list[str] = []

    def held_in(shard: str) -> Renewal:
        asked.append(shard)
        return HELD

    async with bus.worker.answering_held(held_in):
        await bus.worker.check()
        await bus.watcher_of("1/3,tier=a.b c").held_leases(wait_seconds=1.5)

    assert asked == ["1/3,tier=a.b c"]


async def test_where_there_are_no_workers_nothing_is_held(bus: BusUnderTest):
    assert await bus.watcher.held_leases(wait_seconds=0.1) == []


async def test_workers_that_stopped_answering_hold_nothing(bus: BusUnderTest, worker: WorkerLink):
    async with worker.answering_held(lambda _: HELD):
        pass
    await worker.check()

    assert await bus.watcher.held_leases(wait_seconds=0.1) == []


async def test_a_controller_is_owned_for_the_length_of_a_block(bus: BusUnderTest, standby: WatcherLink):
    assert not await standby.is_owned(CONTROLLER)

    async with bus.watcher.owning(CONTROLLER, leads=lambda: True):
        await bus.watcher.check()
        assert await standby.is_owned(CONTROLLER)
        assert not await standby.is_owned(controller_id("other.things"))

    await bus.watcher.check()
    assert not await standby.is_owned(CONTROLLER)


async def test_watchers_of_all_shards_know_who_owns_a_controller(bus: BusUnderTest):
    async with bus.watcher.owning(CONTROLLER, leads=lambda: True):
        await bus.watcher.check()
        assert await bus.watcher_of("other").is_owned(CONTROLLER)


async def test_an_owner_that_does_not_lead_is_silent(bus: BusUnderTest, standby: WatcherLink):
    async with bus.watcher.owning(CONTROLLER, leads=lambda: False):
        await bus.watcher.check()
        with pytest.raises(Unavailable) as silence:
            await standby.is_owned(CONTROLLER)

    assert not isinstance(silence.value, NobodyThere)


async def test_without_a_broker_nobody_knows_who_owns_a_controller(bus: BusUnderTest, standby: WatcherLink):
    await bus.stop()

    with pytest.raises(Unavailable):
        await standby.is_owned(CONTROLLER)


async def test_a_resignation_is_heard_in_its_own_shard(bus: BusUnderTest, standby: WatcherLink):
    heard: list[str] = []
    async with (
        standby.on_resignation(lambda: heard.append("standby")),
        bus.watcher_of("other").on_resignation(lambda: heard.append("other")),
    ):
        await standby.check()
        await bus.watcher.announce_resignation()

        await eventually(lambda: bool(heard))

    assert heard == ["standby"]


async def test_presence_is_heard_by_all_watchers_of_the_shard(bus: BusUnderTest, standby: WatcherLink):
    ours = Presence(rank=PresenceRank.SERVING, watcher="one")
    heard: list[tuple[str, Presence]] = []
    async with (
        bus.watcher.on_presence(lambda presence: heard.append(("one", presence))),
        standby.on_presence(lambda presence: heard.append(("other", presence))),
        bus.watcher_of("elsewhere").on_presence(lambda presence: heard.append(("elsewhere", presence))),
    ):
        await bus.watcher.check()
        await standby.check()
        await bus.watcher.announce_presence(ours)

        await eventually(lambda: len(heard) == 2)

    assert sorted(heard) == [("one", ours), ("other", ours)]
