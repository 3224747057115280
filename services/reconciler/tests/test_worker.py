import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from metaloop.common.bus.channels import WatcherEars, hearing_workers, held_leases
from metaloop.common.bus.claims import serving_claims
from metaloop.common.bus.connect import Bus, connected
from metaloop.common.bus.jobs import JobPublisher
from metaloop.common.bus.messages import ClaimRequest, Renewal
from metaloop.common.bus.stream import JobStream, StreamSettings
from metaloop.common.errors import LeaseLost
from metaloop.common.job import JobKey
from metaloop.common.observation import Busy, Gone, Granted, granted_to_bytes, refusal_to_bytes
from metaloop.common.report import SyncReport
from metaloop.common.testing.builders import SHARD, cached_observation, job, job_key, sync_report
from metaloop.common.testing.polling import eventually
from metaloop.devkit.broker import Broker
from metaloop.reconciler.lease import LeaseGuard
from metaloop.reconciler.slots import Slot
from metaloop.reconciler.worker import Worker, WorkerSettings

ACK_WAIT_SECONDS = 1.0


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[Bus]:
    async with Broker.start(tmp_path) as broker, connected(broker.url, name="test") as bus:
        yield bus


@pytest.fixture
async def stream(bus: Bus) -> JobStream:
    stream = JobStream(bus, StreamSettings(ack_wait_seconds=ACK_WAIT_SECONDS))
    await stream.ensure()
    return stream


class Watcher:
    """The other end: grants each claim, unless told otherwise, and remembers what it heard."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.refusals: list[Busy | Gone] = []
        """How the next claims are answered."""
        self.leases: dict[str, JobKey] = {}
        self.lost: list[str] = []
        """The leases that it knows no more."""
        self.renewals: list[Renewal] = []
        self.words: list[str] = []
        """Reports and receipts in the order in which they came."""
        self.reports: list[SyncReport] = []
        self.stored: Counter[JobKey] = Counter()
        self._publisher = JobPublisher(bus, lambda key, _: self.stored.update([key]))

    @asynccontextmanager
    async def watching(self) -> AsyncIterator["Watcher"]:
        ears = WatcherEars(on_renewal=self._renewal, on_report=self._report, on_receipt=self._receipt)
        async with (
            self._publisher.listening(),
            hearing_workers(self.bus, SHARD, ears),
            serving_claims(self.bus, SHARD, handler=self._claim),
        ):
            yield self

    async def offer(self, *names: str) -> None:
        for name in names:
            await self._publisher.offer(job(name))
        await eventually(lambda: all(self.stored[job_key(name)] for name in names))

    def _claim(self, request: ClaimRequest) -> bytes:
        if self.refusals:
            return refusal_to_bytes(self.refusals.pop(0))
        lease = f"e-{len(self.leases)}"
        self.leases[lease] = request.key
        parent = b'{"name":"%s"}' % request.key.name.encode()
        return granted_to_bytes(cached_observation(parent), lease=lease, lease_seconds=ACK_WAIT_SECONDS)

    def _renewal(self, renewal: Renewal) -> list[str]:
        self.renewals.append(renewal)
        return self.lost

    def _report(self, report: SyncReport) -> None:
        self.reports.append(report)
        self.words.append(f"report {report.lease}")

    def _receipt(self, lease: str) -> None:
        self.words.append(f"receipt {lease}")


@pytest.fixture
async def watcher(bus: Bus, stream: JobStream) -> AsyncIterator[Watcher]:
    async with Watcher(bus).watching() as watcher:
        yield watcher


@asynccontextmanager
async def working(
    bus: Bus, sync: Callable[[Granted, Slot, LeaseGuard], Awaitable[SyncReport]], *, active: int = 4, total: int = 8, drain: float = 5.0
) -> AsyncIterator[Worker]:
    """A worker that runs until the end of the block, and is then stopped."""
    settings = WorkerSettings(active_jobs=active, waiting_jobs=total, ack_wait_seconds=ACK_WAIT_SECONDS, drain_seconds=drain)
    stream = JobStream(bus, StreamSettings(ack_wait_seconds=ACK_WAIT_SECONDS))
    worker = Worker(bus, stream, sync=sync, settings=settings)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()


def name_in(granted: Granted) -> str:
    return str(granted.observation.parent["name"])


async def done(granted: Granted, _slot: Slot, _guard: LeaseGuard) -> SyncReport:
    """A sync that has nothing to do."""
    return sync_report(job_key(name_in(granted)), granted.lease)


class Stuck:
    """A sync that waits until it is let go, and counts how many do so at once."""

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


async def test_a_job_is_synced_reported_and_then_removed(bus: Bus, watcher: Watcher):
    async with working(bus, done):
        await watcher.offer("a")

        await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])

    assert watcher.reports[0].key == job_key("a")


async def test_a_job_whose_key_is_busy_is_tried_again(bus: Bus, watcher: Watcher):
    watcher.refusals = [Busy(retry_seconds=0.05), Busy(retry_seconds=0.05)]
    async with working(bus, done):
        await watcher.offer("a")

        await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])


async def test_a_job_whose_parent_is_gone_is_removed_without_a_report(bus: Bus, watcher: Watcher):
    watcher.refusals = [Gone(reason="deleted", lease="e-gone")]
    async with working(bus, done):
        await watcher.offer("a")

        await eventually(lambda: watcher.words == ["receipt e-gone"])


async def test_a_sync_that_crashes_is_reported_as_a_failure(bus: Bus, watcher: Watcher):
    async def crash(granted: Granted, slot: Slot, guard: LeaseGuard) -> SyncReport:
        raise ZeroDivisionError("one over none")

    async with working(bus, crash):
        await watcher.offer("a")
        await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])

    report = watcher.reports[0]
    assert (report.result, report.reason, report.message) == ("retry", "Crashed", "unforeseen: ZeroDivisionError('one over none')")


async def test_a_job_that_takes_longer_than_its_lease_is_synced_once(bus: Bus, watcher: Watcher):
    stuck = Stuck()
    async with working(bus, stuck):
        await watcher.offer("a")
        await eventually(lambda: sum(bool(renewal.leases) for renewal in watcher.renewals) >= 9)  # three times ack_wait
        stuck.go.set()
        await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])

    assert stuck.began == ["a"]


async def test_a_job_whose_lease_is_lost_is_dropped_without_a_word(bus: Bus, watcher: Watcher):
    stuck = Stuck()
    async with working(bus, stuck) as worker:
        await watcher.offer("a")
        await eventually(lambda: bool(stuck.guards))
        watcher.lost = ["e-0"]
        await eventually(lambda: not stuck.guards[0].is_valid)
        stuck.go.set()

        await eventually(lambda: len(watcher.leases) == 2)  # it came back, since nobody acknowledged it
        await eventually(lambda: watcher.words == ["report e-1", "receipt e-1"])
        assert worker.jobs == 0


async def test_a_lease_that_nobody_confirms_ends_by_itself(bus: Bus, stream: JobStream):
    stuck = Stuck()
    async with working(bus, stuck):
        async with Watcher(bus).watching() as watcher:
            await watcher.offer("a")
            await eventually(lambda: bool(stuck.guards))

        await eventually(lambda: not stuck.guards[0].is_valid)
        with pytest.raises(LeaseLost):
            stuck.guards[0].check()
        stuck.go.set()


async def test_a_job_that_comes_while_no_watcher_is_there_is_synced_later(bus: Bus, stream: JobStream):
    async with working(bus, done):
        early = Watcher(bus)
        async with early._publisher.listening():
            await early.offer("a")
        async with Watcher(bus).watching() as watcher:
            await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])


async def test_no_more_jobs_work_at_once_than_there_are_places(bus: Bus, watcher: Watcher):
    stuck = Stuck()
    async with working(bus, stuck, active=2):
        await watcher.offer("a", "b", "c", "d")
        await eventually(lambda: len(stuck.began) == 2)
        await eventually(lambda: bool(watcher.renewals))
        assert len(stuck.began) == 2

        stuck.go.set()

        await eventually(lambda: len(watcher.reports) == 4)


async def test_jobs_that_wait_for_a_webhook_make_room_for_others(bus: Bus, watcher: Watcher):
    go = asyncio.Event()
    waiting: list[str] = []

    async def sync(granted: Granted, slot: Slot, guard: LeaseGuard) -> SyncReport:
        async with slot.waiting():
            waiting.append(name_in(granted))
            await go.wait()
        return await done(granted, slot, guard)

    async with working(bus, sync, active=1, total=3):
        await watcher.offer("a", "b", "c", "d")
        await eventually(lambda: len(waiting) == 3)
        await eventually(lambda: bool(watcher.renewals))
        assert len(waiting) == 3

        go.set()

        await eventually(lambda: len(watcher.reports) == 4)


async def test_a_watcher_that_starts_is_told_of_leases(bus: Bus, watcher: Watcher):
    stuck = Stuck()
    async with working(bus, stuck):
        await watcher.offer("a")
        await eventually(lambda: bool(stuck.began))

        answers = await held_leases(bus, SHARD, wait_seconds=0.1)

        assert [[held.lease for held in answer.leases] for answer in answers] == [["e-0"]]
        stuck.go.set()


async def test_a_worker_that_stops_finishes_what_it_has(bus: Bus, watcher: Watcher):
    stuck = Stuck()
    async with working(bus, stuck) as worker:
        await watcher.offer("a")
        await eventually(lambda: bool(stuck.began))
        worker.stop()
        await watcher.offer("late")
        stuck.go.set()

    await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])
    assert stuck.began == ["a"]


async def test_a_worker_that_stops_gives_up_what_takes_too_long(bus: Bus, watcher: Watcher):
    stuck = Stuck()
    async with working(bus, stuck, drain=0.1) as worker:
        await watcher.offer("a")
        await eventually(lambda: bool(stuck.began))
        worker.stop()

    await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])
    assert (watcher.reports[0].result, watcher.reports[0].reason) == ("throttled", "WorkerStopped")


async def test_jobs_that_a_stopped_worker_never_took_are_anothers(bus: Bus, watcher: Watcher):
    async with working(bus, done):
        pass
    await watcher.offer("a")

    async with working(bus, done):
        await eventually(lambda: watcher.words == ["report e-0", "receipt e-0"])
