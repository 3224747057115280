import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from metaloop.common.bus.links import OnLease, WatcherLink, WorkerLink, unheeded
from metaloop.common.bus.messages import ClaimRequest, OfferOutcome, RelatedRequest, Renewal
from metaloop.common.bus.nats.connection import Connection, connected
from metaloop.common.bus.nats.stream import StreamSettings
from metaloop.common.bus.nats.watcher import NatsWatcherLink
from metaloop.common.bus.nats.worker import NatsWorkerLink
from metaloop.common.errors import LeaseLost, Unavailable
from metaloop.common.job import JobKey
from metaloop.common.observation import Busy, CachedClaimReply, CachedGrant, CachedRelated, ClaimReply, Gone, Granted
from metaloop.common.report import SyncReport
from metaloop.common.testing.builders import SHARD, cached_observation, job, job_key, sync_report
from metaloop.common.testing.polling import eventually
from metaloop.devkit.broker import Broker
from metaloop.reconciler.concurrency import Slot
from metaloop.reconciler.lease import LeaseGuard
from metaloop.reconciler.sync_numbers import numbers
from metaloop.reconciler.worker import RoomFor, Worker, WorkerSettings

ACK_WAIT_SECONDS = 2.0
STREAM = StreamSettings(ack_wait_seconds=ACK_WAIT_SECONDS)


@pytest.fixture
async def connection(tmp_path: Path) -> AsyncIterator[Connection]:
    async with Broker.start(tmp_path) as broker, connected(broker.url, name="test") as connection:
        yield connection


@pytest.fixture
async def watcher_link(connection: Connection) -> WatcherLink:
    """The watcher's end of the bus. The stream exists."""
    link = NatsWatcherLink(connection, STREAM, shard=SHARD)
    await link.ensure_stream()
    return link


class CountingLink(NatsWorkerLink):
    """Counts the claims that were not answered."""

    unanswered = 0

    async def claim(self, shard: str, request: ClaimRequest, *, on_lease: OnLease = unheeded) -> ClaimReply:
        try:
            return await super().claim(shard, request, on_lease=on_lease)
        except Unavailable:
            self.unanswered += 1
            raise


@pytest.fixture
def link(connection: Connection) -> CountingLink:
    """The worker's end of the bus."""
    return CountingLink(connection, STREAM)


class Watcher:
    """The watcher: it grants each claim, unless told otherwise, and keeps what it receives."""

    def __init__(self, link: WatcherLink) -> None:
        self.link = link
        self.refusals: list[Busy | Gone] = []
        """The replies to the next claims."""
        self.leases: dict[str, JobKey] = {}
        self.lost: list[str] = []
        """The leases that it no longer knows."""
        self.renewals: list[Renewal] = []
        self.words: list[str] = []
        """Reports and receipts in the order of their arrival."""
        self.reports: list[SyncReport] = []
        self.stored: Counter[JobKey] = Counter()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator["Watcher"]:
        async with self.link.serving(self, leads=lambda: True):
            yield self

    async def offer(self, *names: str) -> None:
        for name in names:
            await self.link.offer(job(name))
        await eventually(lambda: all(self.stored[job_key(name)] for name in names))

    def answer_claim(self, request: ClaimRequest) -> CachedClaimReply:
        if self.refusals:
            return self.refusals.pop(0)
        lease = f"e-{len(self.leases)}"
        self.leases[lease] = request.key
        parent = b'{"name":"%s"}' % request.key.name.encode()
        return CachedGrant(observation=cached_observation(parent), lease=lease, lease_seconds=ACK_WAIT_SECONDS)

    def answer_related(self, request: RelatedRequest) -> CachedRelated:
        raise NotImplementedError

    def take_outcome(self, key: JobKey, outcome: OfferOutcome) -> None:
        assert outcome is OfferOutcome.QUEUED
        self.stored.update([key])

    def take_renewal(self, renewal: Renewal) -> list[str]:
        self.renewals.append(renewal)
        return self.lost

    def take_report(self, report: SyncReport) -> None:
        self.reports.append(report)
        self.words.append(f"report {report.lease}")

    def take_receipt(self, lease: str) -> None:
        self.words.append(f"receipt {lease}")


@pytest.fixture
async def watcher(watcher_link: WatcherLink) -> AsyncIterator[Watcher]:
    async with Watcher(watcher_link).watching() as watcher:
        yield watcher


@asynccontextmanager
async def room_for_all(_: JobKey, __: Slot) -> AsyncIterator[None]:
    """No parent is large."""
    yield


@asynccontextmanager
async def working(
    link: WorkerLink,
    sync: Callable[[Granted, Slot, LeaseGuard], Awaitable[SyncReport]],
    *,
    active: int = 4,
    total: int = 8,
    drain: float = 5.0,
    ack_wait: float = ACK_WAIT_SECONDS,
    room_for: RoomFor = room_for_all,
) -> AsyncIterator[Worker]:
    """A worker that runs while the block lasts."""
    settings = WorkerSettings(active_jobs=active, waiting_jobs=total, ack_wait_seconds=ack_wait, drain_seconds=drain)
    worker = Worker(link, sync=sync, settings=settings, room_for=room_for)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()


def name_in(granted: Granted) -> str:
    return str(granted.observation.parent["name"])


async def done(granted: Granted, _slot: Slot, _guard: LeaseGuard) -> SyncReport:
    """A sync that does nothing."""
    return sync_report(job_key(name_in(granted)), granted.lease)


class Stuck:
    """A sync that waits until it is released, and counts concurrent syncs."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.go = asyncio.Event()
        self.guards: list[LeaseGuard] = []

    async def __call__(self, granted: Granted, slot: Slot, guard: LeaseGuard) -> SyncReport:
        self.began.append(name_in(granted))
        self.guards.append(guard)
        await self.go.wait()
        guard.check()
        return await done(granted, slot, guard)


async def test_a_job_is_synced_reported_and_then_removed(link: WorkerLink, watcher: Watcher):
    async with working(link, done):
        await watcher.offer("a")

        await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])

    assert watcher.reports[0].key == job_key("a")


async def test_a_job_whose_key_is_busy_is_tried_again(link: WorkerLink, watcher: Watcher):
    watcher.refusals = [Busy(retry_seconds=0.05), Busy(retry_seconds=0.05)]
    async with working(link, done):
        await watcher.offer("a")

        await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])


async def test_a_job_whose_parent_is_gone_is_removed_without_a_report(link: WorkerLink, watcher: Watcher):
    watcher.refusals = [Gone(reason="deleted", lease="e-gone")]
    async with working(link, done):
        await watcher.offer("a")

        await eventually(lambda: watcher.words == ["receipt e-gone"])


async def test_a_sync_that_crashes_is_reported_as_a_failure(link: WorkerLink, watcher: Watcher):
    async def crash(granted: Granted, slot: Slot, guard: LeaseGuard) -> SyncReport:
        raise ZeroDivisionError("one over none")

    before = numbers.of(job_key("a").controller).crashes
    async with working(link, crash):
        await watcher.offer("a")
        await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])

    report = watcher.reports[0]
    assert numbers.of(job_key("a").controller).crashes == before + 1
    assert (report.result, report.reason, report.message) == ("retry", "Crashed", "unforeseen: ZeroDivisionError('one over none')")


async def test_a_job_that_takes_longer_than_its_lease_is_synced_once(link: WorkerLink, watcher: Watcher):
    stuck = Stuck()
    async with working(link, stuck):
        await watcher.offer("a")
        await eventually(lambda: sum(bool(renewal.leases) for renewal in watcher.renewals) >= 5)  # longer than ack_wait
        stuck.go.set()
        await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])

    assert stuck.began == ["a"]


async def test_a_job_whose_lease_is_lost_is_dropped_without_a_word(link: WorkerLink, watcher: Watcher):
    stuck = Stuck()
    async with working(link, stuck) as worker:
        await watcher.offer("a")
        await eventually(lambda: bool(stuck.guards))
        watcher.lost = ["e-0"]
        await eventually(lambda: not stuck.guards[0].is_valid)
        stuck.go.set()

        await eventually(lambda: len(watcher.leases) == 2)  # it was redelivered, since nobody acknowledged it
        await eventually(lambda: watcher.words == ["report e-1", "receipt e-1"])
        assert worker.jobs == 0


async def test_a_lease_that_nobody_confirms_ends_by_itself(link: WorkerLink, watcher_link: WatcherLink):
    stuck = Stuck()
    async with working(link, stuck):
        async with Watcher(watcher_link).watching() as watcher:
            await watcher.offer("a")
            await eventually(lambda: bool(stuck.guards))

        await eventually(lambda: not stuck.guards[0].is_valid)
        with pytest.raises(LeaseLost):
            stuck.guards[0].check()
        stuck.go.set()


class SlowLink(CountingLink):
    """Brings the observation long after the lease."""

    arrived: asyncio.Event

    async def claim(self, shard: str, request: ClaimRequest, *, on_lease: OnLease = unheeded) -> ClaimReply:
        reply = await super().claim(shard, request, on_lease=on_lease)
        await self.arrived.wait()
        return reply


async def test_a_lease_is_renewed_while_its_observation_arrives(connection: Connection, watcher: Watcher):
    link = SlowLink(connection, STREAM)
    link.arrived = asyncio.Event()
    async with working(link, done):
        await watcher.offer("a")
        await eventually(lambda: sum(bool(renewal.leases) for renewal in watcher.renewals) >= 5)  # longer than it lasts
        link.arrived.set()

        await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])


async def test_a_sync_is_cancelled_when_its_lease_ends(link: WorkerLink, watcher: Watcher):
    stuck = Stuck()
    async with working(link, stuck) as worker:
        await watcher.offer("a")
        await eventually(lambda: bool(stuck.guards))
        watcher.lost = ["e-0"]

        await eventually(lambda: worker.jobs == 0)  # although nothing let it go on
        stuck.go.set()
        await eventually(lambda: watcher.words == ["report e-1", "receipt e-1"])


async def test_a_lease_that_is_shorter_than_our_own_setting_is_renewed_in_time(link: WorkerLink, watcher: Watcher):
    stuck = Stuck()
    async with working(link, stuck, ack_wait=6 * ACK_WAIT_SECONDS):
        await watcher.offer("a")
        await eventually(lambda: sum(bool(renewal.leases) for renewal in watcher.renewals) >= 5)  # longer than it lasts
        stuck.go.set()
        await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])

    assert stuck.began == ["a"]


async def test_a_job_that_comes_while_no_watcher_is_there_is_synced_later(link: CountingLink, watcher_link: WatcherLink):
    async with Watcher(watcher_link).watching() as early:
        await early.offer("a")
    async with working(link, done):
        await eventually(lambda: link.unanswered > 0)
        async with Watcher(watcher_link).watching() as watcher:
            await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])


async def test_no_more_jobs_are_active_at_once_than_allowed(link: WorkerLink, watcher: Watcher):
    stuck = Stuck()
    async with working(link, stuck, active=2):
        await watcher.offer("a", "b", "c", "d")
        await eventually(lambda: len(stuck.began) == 2)
        await eventually(lambda: bool(watcher.renewals))
        assert len(stuck.began) == 2

        stuck.go.set()

        await eventually(lambda: len(watcher.reports) == 4)


async def test_jobs_that_wait_for_a_webhook_make_room_for_others(link: WorkerLink, watcher: Watcher):
    go = asyncio.Event()
    waiting: list[str] = []

    async def sync(granted: Granted, slot: Slot, guard: LeaseGuard) -> SyncReport:
        async with slot.waiting():
            waiting.append(name_in(granted))
            await go.wait()
        return await done(granted, slot, guard)

    async with working(link, sync, active=1, total=3):
        await watcher.offer("a", "b", "c", "d")
        await eventually(lambda: len(waiting) == 3)
        await eventually(lambda: bool(watcher.renewals))
        assert len(waiting) == 3

        go.set()

        await eventually(lambda: len(watcher.reports) == 4)


async def test_a_watcher_that_starts_is_told_of_leases(link: WorkerLink, watcher: Watcher):
    stuck = Stuck()
    async with working(link, stuck):
        await watcher.offer("a")
        await eventually(lambda: bool(stuck.began))

        answers = await watcher.link.held_leases(wait_seconds=1.5)

        assert [[held.lease for held in answer.leases] for answer in answers] == [["e-0"]]
        stuck.go.set()


async def test_a_worker_that_stops_finishes_what_it_has(link: WorkerLink, watcher: Watcher):
    stuck = Stuck()
    async with working(link, stuck) as worker:
        await watcher.offer("a")
        await eventually(lambda: bool(stuck.began))
        worker.stop()
        await watcher.offer("late")
        stuck.go.set()

    await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])
    assert stuck.began == ["a"]


async def test_a_worker_that_stops_gives_up_what_takes_too_long(link: WorkerLink, watcher: Watcher):
    stuck = Stuck()
    async with working(link, stuck, drain=0.1) as worker:
        await watcher.offer("a")
        await eventually(lambda: bool(stuck.began))
        worker.stop()

    await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])
    assert (watcher.reports[0].result, watcher.reports[0].reason) == ("throttled", "WorkerStopped")


async def test_jobs_that_a_stopped_worker_never_took_are_anothers(link: WorkerLink, watcher: Watcher):
    async with working(link, done):
        pass
    await watcher.offer("a")

    async with working(link, done):
        await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])
