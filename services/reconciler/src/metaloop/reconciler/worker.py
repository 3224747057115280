"""Takes jobs one parent at a time; turns an `Outcome` into ack, outcome and done.

- **pull** a job, into a free slot;
- **claim** a lease and an observation from the watcher; Busy: give the job back; Gone: remove it;
- **sync**: the pipeline; every write is preceded by a look at the lease;
- **report** to the watcher how it ended;
- **acknowledge** to the server, whose own receipt tells the watcher that the job is out of the stream.

A job whose lease was lost is dropped without a word: it is, or will be, somebody else's.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never
from uuid import uuid4

from metaloop.common.bus.channels import answering_held, report
from metaloop.common.bus.claims import claim
from metaloop.common.bus.connect import Bus
from metaloop.common.bus.messages import ClaimRequest, done_subject
from metaloop.common.bus.pull import Delivery, JobSource
from metaloop.common.bus.stream import JobStream
from metaloop.common.errors import LeaseLost, Unavailable
from metaloop.common.faults import Fault
from metaloop.common.job import Job
from metaloop.common.observation import Busy, Gone, Granted
from metaloop.common.report import SyncReport
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.telemetry.spans import Span
from metaloop.common.telemetry.traces import span
from metaloop.reconciler.holdings import Held, Holdings
from metaloop.reconciler.lease import LeaseGuard
from metaloop.reconciler.slots import Slot, Slots

log = get_logger()

Sync: TypeAlias = Callable[[Granted, Slot, LeaseGuard], Awaitable[SyncReport]]
"""Brings a parent to its desired state; raises `LeaseLost` where it noticed that it may not."""

_CLAIM_AGAIN_SECONDS = 0.5
_TWICE_HELD_SECONDS = 1.0
_STOPPED_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How much a worker takes on, and for how long it waits."""

    active_jobs: int = 8
    """Jobs that use the CPU or the API server at once."""
    waiting_jobs: int = 256
    """Jobs in all, most of which wait for a webhook."""
    ack_wait_seconds: float = 5.0
    """The stream's own: a job and its lease are renewed three times within it."""
    drain_seconds: float = 6.0
    """How long jobs may go on after `stop`."""


class Worker:
    """One worker, for the jobs of all shards; `run` it once."""

    def __init__(self, bus: Bus, stream: JobStream, *, sync: Sync, settings: WorkerSettings) -> None:
        self._bus = bus
        self._sync = sync
        self._settings = settings
        self._clock = time.monotonic
        self._id = uuid4().hex
        self._slots = Slots(active=settings.active_jobs, total=settings.waiting_jobs)
        self._held = Holdings(bus, worker=self._id, ack_wait_seconds=settings.ack_wait_seconds, room=self._room, clock=self._clock)
        self._source = JobSource(bus, stream, room=self._room, on_job=self._take)
        self._slots.on_room = self._source.wake
        self._stopping = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        """Where jobs run; None before and after they may."""

    @property
    def jobs(self) -> int:
        """How many jobs are in hand."""
        return len(self._held)

    async def run(self) -> None:
        """Work until `stop`, and then until the jobs in hand are finished or given back."""
        async with answering_held(self._bus, self._held.in_shard), asyncio.TaskGroup() as tasks:
            renewing = tasks.create_task(self._held.keep_alive(), name="renew")
            pulling = tasks.create_task(self._source.run(), name="pull")
            await self._run_jobs()
            pulling.cancel()
            renewing.cancel()

    def stop(self) -> None:
        """Take no more jobs; `run` returns when those in hand are finished, or were given their time."""
        self._stopping.set()

    async def _run_jobs(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                await self._stopping.wait()
                limit.reschedule(asyncio.get_running_loop().time() + self._settings.drain_seconds)

    def _room(self) -> int:
        return 0 if self._stopping.is_set() else self._slots.room(len(self._held))

    async def _take(self, delivery: Delivery) -> None:
        """Start a job; one that comes while we stop, or while its key is in our hands, goes back."""
        if self._tasks is None or self._stopping.is_set():
            await delivery.give_back()
        elif delivery.job.key in self._held:
            await delivery.give_back(after_seconds=_TWICE_HELD_SECONDS)
        else:
            self._tasks.create_task(self._work(self._held.take(delivery)))

    async def _work(self, held: Held) -> None:
        """One job from its claim to its end."""
        delivery = held.delivery
        try:
            async with self._slots.new() as slot:
                await self._claim_and_sync(held, slot)
        except LeaseLost as error:
            log.warning("worker.lease_lost", **{fields.KEY: str(delivery.job.key), fields.ERROR: str(error)})
        except Unavailable as error:
            log.info("worker.job_given_back", **{fields.KEY: str(delivery.job.key), fields.ERROR: str(error)})
            with suppress(Unavailable):
                await delivery.give_back(after_seconds=_CLAIM_AGAIN_SECONDS)
        except asyncio.CancelledError:
            await self._give_up(held)
            raise
        finally:
            self._held.drop(held)
            self._source.wake()

    async def _claim_and_sync(self, held: Held, slot: Slot) -> None:
        job, asked_at = held.delivery.job, self._clock()
        reply = await claim(self._bus, job.shard, ClaimRequest(key=job.key, worker=self._id, slots=self._room()))
        match reply:
            case Granted():
                held.guard = LeaseGuard(reply.lease, ends=asked_at + reply.lease_seconds, clock=self._clock)
                with _traced(job) as spanned:
                    finished = await self._synced(job, reply, slot, held.guard)
                    _note(spanned, finished)
                await self._finish(held, finished)
            case Busy(retry_seconds=seconds):
                await held.delivery.give_back(after_seconds=seconds)
            case Gone(lease=lease):
                await held.delivery.finish(receipt_to=done_subject(job.shard, lease) if lease else "")
            case _:
                assert_never(reply)

    async def _synced(self, job: Job, granted: Granted, slot: Slot, guard: LeaseGuard) -> SyncReport:
        try:
            return await self._sync(granted, slot, guard)
        except LeaseLost:
            raise
        except Exception as error:
            # The top of the loop over jobs: what a sync didn't foresee is that parent's failure alone.
            log.exception("worker.sync_crashed", **{fields.KEY: str(job.key)})
            return SyncReport(key=job.key, lease=granted.lease, result="retry", fault=Fault.CRASHED, message=f"unforeseen: {error!r}")

    async def _finish(self, held: Held, finished: SyncReport) -> None:
        if held.guard is not None:
            held.guard.check()
        job = held.delivery.job
        await report(self._bus, job.shard, finished)
        await held.delivery.finish(receipt_to=done_subject(job.shard, finished.lease))

    async def _give_up(self, held: Held) -> None:
        """Let somebody else have a job that we have no time for: with its lease, so that nobody waits for that to run out."""
        with suppress(Unavailable, LeaseLost):
            if held.guard is None:
                await held.delivery.give_back()
            else:
                # Nobody will know what it wrote: the wait gives the watcher's cache time to see that.
                stopped = SyncReport(key=held.delivery.job.key, lease=held.guard.lease, result="throttled", after_seconds=_STOPPED_SECONDS)
                await self._finish(held, replace(stopped, fault=Fault.WORKER_STOPPED))


def _traced(job: Job) -> AbstractContextManager[Span]:
    """The job as a span below that of the mark which queued it; the marks of timers have none, and then a trace begins here."""
    return span("job", traceparent=job.traceparent, attributes={fields.KEY: str(job.key), fields.REASON: job.reason})


def _note(spanned: Span, finished: SyncReport) -> None:
    spanned.set(fields.OUTCOME, finished.result)
    if finished.result != "done":
        spanned.fail(f"{finished.reason}: {finished.message}")
