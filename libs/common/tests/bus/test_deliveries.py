"""Conformance: jobs reach workers at least once, and no more of them than there is room for."""

import asyncio
from contextlib import suppress

from metaloop.common.bus.links import WorkerLink
from metaloop.common.job import Job
from metaloop.common.testing.builders import SHARD, job_key
from metaloop.common.testing.polling import eventually

from .hands import Watcher, pulling
from .subject import ACK_WAIT_SECONDS, BusUnderTest


async def test_a_job_comes_as_it_was_offered(watcher: Watcher, worker: WorkerLink):
    offered = Job(key=job_key("a"), shard=SHARD, reason="it changed", traceparent="00-a-b-01")
    async with pulling(worker) as hands:
        await watcher.offer(offered)

        assert (await hands.next()).job == offered


async def test_no_more_jobs_are_delivered_than_there_is_room_for(watcher: Watcher, worker: WorkerLink):
    await watcher.queue(*(f"p{number}" for number in range(10)))
    async with pulling(worker, slots=3) as hands:
        for _ in range(7):
            await eventually(lambda: len(hands.hands) == 3)
            await (await hands.next()).finish(lease="")
        await eventually(lambda: len(hands.hands) == 3)
        await hands.hands.pop().finish(lease="")

        assert len(hands.hands) == 2


async def test_two_workers_share_the_jobs(bus: BusUnderTest, watcher: Watcher):
    await watcher.queue(*(f"p{number}" for number in range(6)))
    async with pulling(bus.worker, slots=3) as one, pulling(bus.other_worker, slots=3) as other:
        await eventually(lambda: len(one.hands) == len(other.hands) == 3)

        assert not set(one.names) & set(other.names)


async def test_a_worker_that_has_more_room_says_so_by_waking_its_source(watcher: Watcher, worker: WorkerLink):
    await watcher.queue("a", "b")
    async with pulling(worker, slots=1) as hands:
        await eventually(lambda: len(hands.hands) == 1)
        hands.slots = 2
        hands.source.wake()

        await eventually(lambda: hands.names == ["a", "b"])


async def test_a_job_that_is_given_back_comes_again(watcher: Watcher, worker: WorkerLink):
    await watcher.queue("a")
    async with pulling(worker) as hands:
        await (await hands.next()).give_back(after_seconds=0.05)

        assert (await hands.next()).job.key == job_key("a")


async def test_a_job_that_is_given_back_at_once_is_anothers(bus: BusUnderTest, watcher: Watcher):
    await watcher.queue("a")
    async with pulling(bus.worker) as one:
        delivery = await one.next()
        one.slots = 0
        async with pulling(bus.other_worker) as other:
            await delivery.give_back()

            await eventually(lambda: one.names + other.names == ["a"])


async def test_a_job_that_nobody_speaks_of_comes_again(watcher: Watcher, worker: WorkerLink):
    await watcher.queue("a")
    loop = asyncio.get_running_loop()
    async with pulling(worker) as hands:
        await eventually(lambda: hands.names == ["a"])
        began = loop.time()

        await eventually(lambda: hands.names == ["a", "a"])

    assert loop.time() - began > ACK_WAIT_SECONDS / 2


async def test_a_job_that_is_kept_alive_does_not_come_again(watcher: Watcher, worker: WorkerLink):
    await watcher.queue("a")
    loop = asyncio.get_running_loop()
    async with pulling(worker) as hands:
        await eventually(lambda: bool(hands.hands))
        ends = loop.time() + 1.5 * ACK_WAIT_SECONDS
        while loop.time() < ends:
            await hands.hands[0].keep_alive()
            with suppress(TimeoutError):
                await eventually(lambda: len(hands.hands) > 1, within_seconds=0.15 * ACK_WAIT_SECONDS)

        assert hands.names == ["a"]


async def test_jobs_are_delivered_after_a_crash(bus: BusUnderTest, watcher: Watcher):
    async with pulling(bus.worker) as hands:
        await bus.stop()
        await bus.restart()
        await watcher.queue("a")

        assert (await hands.next()).job.key == job_key("a")


async def test_jobs_are_delivered_after_the_stream_was_lost(bus: BusUnderTest, watcher: Watcher):
    async with pulling(bus.worker) as hands:
        await bus.wipe()
        await watcher.link.ensure_stream()
        await watcher.queue("a")

        assert (await hands.next()).job.key == job_key("a")
