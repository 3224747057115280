import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from metaloop.common.bus.links import Delivery, WorkerLink
from metaloop.common.bus.messages import ClaimRequest, HeldLease, RelatedRequest, Renewal
from metaloop.common.bus.nats.connection import Connection, connected
from metaloop.common.bus.nats.stream import StreamSettings
from metaloop.common.bus.nats.watcher import NatsWatcherLink
from metaloop.common.bus.nats.worker import NatsWorkerLink
from metaloop.common.errors import Unavailable
from metaloop.common.job import JobKey
from metaloop.common.json import loads
from metaloop.common.observation import Busy, CachedObservation, CachedRelated, ClaimReply, Gone, Granted
from metaloop.common.report import SyncReport
from metaloop.common.testing.builders import SHARD, cached_observation, job_key, sync_report
from metaloop.common.testing.polling import eventually
from metaloop.devkit.broker import Broker
from metaloop.devkit.testbed.eventually import eventually as until
from metaloop.devkit.testbed.eventually import expect, steadily
from metaloop.watcher.claims import Claims
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.core.window import Window
from metaloop.watcher.dispatch import Dispatcher
from metaloop.watcher.workqueue import MarkClass, WorkQueue

STREAM = StreamSettings(ack_wait_seconds=3.0)
LIMITS = Limits(lease_seconds=3.0, claim_seconds=3.0)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with Broker.start(tmp_path) as broker:
        yield broker


@pytest.fixture
async def connection(broker: Broker) -> AsyncIterator[Connection]:
    async with connected(broker.url, name="watcher") as connection:
        yield connection


class Cluster:
    """Which parents there are."""

    def __init__(self) -> None:
        self.gone: set[JobKey] = set()

    def observe(self, key: JobKey) -> CachedObservation | Gone:
        return Gone(reason="deleted") if key in self.gone else cached_observation()


class Routing:
    """What the dispatcher told the router."""

    def __init__(self) -> None:
        self.reports: list[SyncReport] = []

    def subscribe(self, request: RelatedRequest) -> CachedRelated:
        return CachedRelated(fingerprint=request.fingerprint)

    def record_report(self, report: SyncReport) -> None:
        self.reports.append(report)


@asynccontextmanager
async def dispatching(
    connection: Connection, cluster: Cluster | None = None, *, behind: list[bool] | None = None
) -> AsyncIterator[WorkQueue]:
    """A watcher's queue, connected to the bus for the length of the block."""
    queue = WorkQueue(shard=SHARD, cache=Caches(), is_behind=lambda *_: False, limits=LIMITS)
    claims = Claims(
        queue, observe=(cluster or Cluster()).observe, is_behind=lambda _: any(behind or ()), lease_seconds=LIMITS.lease_seconds
    )
    link = NatsWatcherLink(connection, STREAM, shard=SHARD)
    dispatcher = Dispatcher(link, queue=queue, claims=claims, routing=Routing(), leads=lambda: True)
    async with dispatcher.open(), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(dispatcher.run())
        yield queue
        running.cancel()


class Worker:
    """Takes jobs off the stream when a test says so."""

    def __init__(self, link: WorkerLink, *, slots: int = 100) -> None:
        self.link = link
        self.hands: list[Delivery] = []
        self._source = link.jobs(room=lambda: slots - len(self.hands), on_job=self._take)

    async def _take(self, delivery: Delivery) -> None:
        self.hands.append(delivery)

    @asynccontextmanager
    async def pulling(self) -> AsyncIterator["Worker"]:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(self._source.run())
            yield self
            running.cancel()

    async def next(self) -> Delivery:
        await eventually(lambda: bool(self.hands))
        self._source.wake()
        return self.hands.pop(0)

    async def claim(self, delivery: Delivery, *, worker: str = "worker") -> ClaimReply:
        return await self.link.claim(SHARD, ClaimRequest(key=delivery.job.key, worker=worker, free_slots=1))

    async def granted(self, delivery: Delivery) -> Granted:
        reply = await self.claim(delivery)
        assert isinstance(reply, Granted), reply
        return reply

    async def finish(self, delivery: Delivery, lease: str) -> None:
        await self.link.report(SHARD, sync_report(delivery.job.key, lease))
        await delivery.finish(lease=lease)

    async def run_next(self) -> JobKey:
        delivery = await self.next()
        await self.finish(delivery, (await self.granted(delivery)).lease)
        return delivery.job.key


@asynccontextmanager
async def pulling(broker: Broker, *, slots: int = 100) -> AsyncIterator[Worker]:
    """A worker with a connection of its own."""
    async with (
        connected(broker.url, name="worker") as connection,
        Worker(NatsWorkerLink(connection, STREAM), slots=slots).pulling() as worker,
    ):
        yield worker


@pytest.fixture
async def worker(broker: Broker) -> AsyncIterator[Worker]:
    async with pulling(broker) as worker:
        yield worker


async def stored(connection: Connection, *, jobs: int) -> None:
    """Raise AssertionError unless the stream has so many jobs."""
    state = loads(await connection.request("$JS.API.STREAM.INFO.JOBS", b"", timeout_seconds=30.0))["state"]
    expect(state["messages"] == jobs, f"the state is {state}")


def mark(queue: WorkQueue, name: str = "a") -> JobKey:
    queue.mark(job_key(name), MarkClass.CHANGED, "it changed")
    return job_key(name)


async def test_a_marked_key_becomes_a_job_and_is_forgotten_when_it_is_done(connection: Connection, worker: Worker):
    async with dispatching(connection) as queue:
        key = mark(queue)

        assert await worker.run_next() == key
        await eventually(lambda: queue.entry(key) is None)


async def test_a_key_marked_while_it_runs_becomes_a_job_again_as_soon_as_it_is_done(connection: Connection, worker: Worker):
    async with dispatching(connection) as queue:
        key = mark(queue)
        delivery = await worker.next()
        granted = await worker.granted(delivery)
        mark(queue)
        await worker.finish(delivery, granted.lease)

        assert await worker.run_next() == key
        assert queue.counts.refusals == 0


async def test_a_second_claim_is_told_to_come_back(connection: Connection, worker: Worker):
    async with dispatching(connection) as queue:
        mark(queue)
        delivery = await worker.next()
        await worker.granted(delivery)

        assert isinstance(await worker.claim(delivery, worker="other"), Busy)


async def test_a_job_whose_parent_is_gone_ends_with_its_receipt(connection: Connection, worker: Worker):
    cluster = Cluster()
    async with dispatching(connection, cluster) as queue:
        key = mark(queue)
        cluster.gone.add(key)
        delivery = await worker.next()
        reply = await worker.claim(delivery)
        assert isinstance(reply, Gone)
        await delivery.finish(lease=reply.lease)

        await eventually(lambda: queue.entry(key) is None)


async def test_a_backlog_stays_in_our_order_but_for_the_window(connection: Connection):
    async with dispatching(connection) as queue:
        for number in range(500):
            mark(queue, f"p{number}")
        await eventually(lambda: queue.unclaimed == Window().size)

        await until(lambda: stored(connection, jobs=Window().size))
        await steadily(lambda: stored(connection, jobs=Window().size), for_seconds=0.2)


async def test_a_fresh_change_overtakes_a_backlog(connection: Connection, broker: Broker):
    async with dispatching(connection) as queue:
        for number in range(500):
            mark(queue, f"p{number}")
        await eventually(lambda: queue.unclaimed == Window().size)
        fresh = mark(queue, "fresh")

        async with pulling(broker, slots=1) as worker:
            ran = [await worker.run_next() for _ in range(60)]

        assert fresh in ran


async def test_jobs_are_offered_again_when_the_store_was_wiped(connection: Connection, broker: Broker):
    async with dispatching(connection) as queue:
        key = mark(queue)
        await eventually(lambda: queue.counts.offers == 1)
        await broker.wipe()

        async with pulling(broker) as worker:
            assert await worker.run_next() == key
            await eventually(lambda: queue.entry(key) is None)


async def test_jobs_are_offered_again_when_somebody_deleted_the_stream(connection: Connection, worker: Worker):
    async with dispatching(connection) as queue:
        await connection.request("$JS.API.STREAM.DELETE.JOBS", b"", timeout_seconds=30.0)
        key = mark(queue)

        assert await worker.run_next() == key


async def test_jobs_live_through_a_crash_of_the_server(connection: Connection, broker: Broker, worker: Worker):
    async with dispatching(connection) as queue:
        await broker.kill()
        key = mark(queue)
        await broker.restart()

        assert await worker.run_next() == key


async def test_a_lease_that_is_renewed_is_kept_and_one_that_is_not_ends(connection: Connection, worker: Worker):
    async with dispatching(connection) as queue:
        key = mark(queue)
        delivery = await worker.next()
        lease = (await worker.granted(delivery)).lease
        held = Renewal(worker="worker", free_slots=0, leases=[HeldLease(key, lease)])
        for _ in range(3):
            assert await worker.link.renew(SHARD, held) == []

        await eventually(lambda: queue.counts.leases_expired == 1)
        assert await worker.link.renew(SHARD, held) == [lease]


async def test_the_job_of_a_dead_worker_is_anothers(connection: Connection, worker: Worker):
    async with dispatching(connection) as queue:
        key = mark(queue)
        await worker.granted(await worker.next())  # and then it dies

        async with asyncio.timeout(60):
            while isinstance(reply := await worker.claim(again := await worker.next(), worker="other"), Busy):
                await again.give_back(after_seconds=reply.retry_seconds)
        assert again.job.key == key
        assert isinstance(reply, Granted)


async def test_leases_that_workers_hold_are_known_when_a_watcher_starts(connection: Connection, worker: Worker):
    async with dispatching(connection) as queue:
        key = mark(queue)
        delivery = await worker.next()
        lease = (await worker.granted(delivery)).lease

    held = Renewal(worker="worker", free_slots=0, leases=[HeldLease(key, lease)])
    async with worker.link.answering_held(lambda _: held), dispatching(connection) as queue:
        mark(queue)
        assert isinstance(await worker.claim(delivery, worker="other"), Busy)

        await worker.finish(delivery, lease)

        assert await worker.run_next() == key  # the mark came after the old life's observation


async def test_a_job_that_an_earlier_watcher_left_in_the_stream_serves_the_new_one(connection: Connection, worker: Worker, broker: Broker):
    async with dispatching(connection) as queue:
        key = mark(queue)
        await eventually(lambda: queue.unclaimed == 1)
    delivery = await worker.next()

    async with dispatching(connection) as queue:
        mark(queue)
        await worker.finish(delivery, (await worker.granted(delivery)).lease)

        await eventually(lambda: queue.entry(key) is None)


async def test_the_holder_of_a_lease_is_told_of_related_objects_and_nobody_else(connection: Connection, worker: Worker):
    async with dispatching(connection) as queue:
        key = mark(queue)
        granted = await worker.granted(await worker.next())
        ours = RelatedRequest(key=key, lease=granted.lease, fingerprint="f", queries=[])
        former = RelatedRequest(key=key, lease="epoch-0", fingerprint="f", queries=[])

        assert (await worker.link.related(SHARD, ours)).fingerprint == "f"
        with pytest.raises(Unavailable):
            await worker.link.related(SHARD, former)


async def test_nobody_gets_a_parent_while_what_we_know_of_its_world_may_be_old(connection: Connection, worker: Worker):
    behind = [True]
    async with dispatching(connection, behind=behind) as queue:
        key = mark(queue)
        delivery = await worker.next()
        refused = await worker.claim(delivery)
        assert isinstance(refused, Busy)
        await delivery.give_back(after_seconds=refused.retry_seconds)

        behind.clear()

        assert await worker.run_next() == key
