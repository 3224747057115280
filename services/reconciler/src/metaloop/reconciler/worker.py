"""Takes jobs off the bus, one parent at a time, and turns the end of each sync into a report.

- **take** a job that there is room for;
- **claim** its lease, with an observation, from the watcher; busy: give the job back; gone: finish it;
- **sync**: the pipeline, which looks at the lease before each request, and is cancelled when the lease ends;
- **report** to the watcher how the sync ended;
- **finish** the job: the stream drops it, and tells the watcher.

A job whose lease was lost is dropped silently: another worker has it, or will have it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from metaloop.common.bus.links import Delivery, WorkerLink
from metaloop.common.bus.messages import ClaimRequest
from metaloop.common.crashes import crash_logged
from metaloop.common.errors import LeaseLost, Unavailable
from metaloop.common.faults import Fault
from metaloop.common.job import ControllerId, Job, JobKey
from metaloop.common.machine import boot_time, unique_token
from metaloop.common.observation import Busy, Gone, Granted, LeaseTerms
from metaloop.common.report import SyncReport
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.telemetry.spans import Span
from metaloop.common.telemetry.traces import span
from metaloop.reconciler.concurrency import ConcurrencyLimiter, Slot
from metaloop.reconciler.in_flight import InFlightJob, InFlightJobs
from metaloop.reconciler.lease import LeaseGuard
from metaloop.reconciler.sync_numbers import numbers

log = get_logger()

Sync: TypeAlias = Callable[[Granted, Slot, LeaseGuard], Awaitable[SyncReport]]
"""Brings a parent to its desired state. Raises LeaseLost where the lease ended before it was done."""
RoomFor: TypeAlias = Callable[[JobKey, Slot], AbstractAsyncContextManager[None]]
"""A block in which a parent may be synced. It may wait for others, and lends the slot meanwhile."""

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

    def __init__(self, link: WorkerLink, *, sync: Sync, settings: WorkerSettings, room_for: RoomFor) -> None:
        self._link = link
        self._sync = sync
        self._room_for = room_for
        self._settings = settings
        self._clock = boot_time
        self._id = unique_token()
        self._source = link.jobs(room=self._room, on_job=self._take)
        self._limiter = ConcurrencyLimiter(active=settings.active_jobs, total=settings.waiting_jobs, on_room=self._source.wake)
        self._in_flight = InFlightJobs(
            link, worker=self._id, ack_wait_seconds=settings.ack_wait_seconds, room=self._room, clock=self._clock
        )
        self._stopping = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        """Where jobs run; None while they may not."""

    @property
    def jobs(self) -> int:
        """How many jobs are in flight."""
        return len(self._in_flight)

    def jobs_by_controller(self) -> Mapping[ControllerId, int]:
        """How many jobs of each controller are in flight; those with none are left out."""
        return Counter(job.delivery.job.key.controller for job in self._in_flight)

    async def run(self) -> None:
        """Work until `stop`, and then until the jobs in flight are finished or given back."""
        async with self._link.answering_held(self._in_flight.held_in), asyncio.TaskGroup() as tasks:
            renewing = tasks.create_task(self._in_flight.keep_alive(), name="renew")
            pulling = tasks.create_task(self._source.run(), name="pull")
            await self._run_jobs()
            pulling.cancel()
            renewing.cancel()

    def stop(self) -> None:
        """Take no more jobs. `run` returns when those in flight are finished, or after `drain_seconds`."""
        self._stopping.set()

    async def _run_jobs(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                await self._stopping.wait()
                limit.reschedule(asyncio.get_running_loop().time() + self._settings.drain_seconds)

    def _room(self) -> int:
        return 0 if self._stopping.is_set() else self._limiter.room(len(self._in_flight))

    async def _take(self, delivery: Delivery) -> None:
        """Start a job. One that comes while we stop, or while its key is in flight, goes back."""
        if self._tasks is None or self._stopping.is_set():
            await delivery.give_back()
        elif delivery.job.key in self._in_flight:
            await delivery.give_back(after_seconds=_TWICE_HELD_SECONDS)
        else:
            self._tasks.create_task(self._contained(self._in_flight.add(delivery)))

    async def _contained(self, in_flight: InFlightJob) -> None:
        """One job. If it crashes, NATS delivers it again, as if its worker had died; other jobs go on."""
        with crash_logged("worker.job_crashed", key=str(in_flight.delivery.job.key)):
            await self._work(in_flight)

    async def _work(self, in_flight: InFlightJob) -> None:
        """One job from its claim to its end."""
        delivery = in_flight.delivery
        try:
            async with self._limiter.slot() as slot, self._room_for(delivery.job.key, slot):
                await self._claim_and_sync(in_flight, slot)
        except LeaseLost as error:
            log.warning("worker.lease_lost", **{fields.KEY: str(delivery.job.key), fields.ERROR: str(error)})
        except Unavailable as error:
            log.info("worker.job_given_back", **{fields.KEY: str(delivery.job.key), fields.ERROR: str(error)})
            with suppress(Unavailable):
                await delivery.give_back(after_seconds=_CLAIM_AGAIN_SECONDS)
        except asyncio.CancelledError:
            await self._give_up(in_flight)
            raise
        finally:
            self._in_flight.remove(in_flight)
            self._source.wake()

    async def _claim_and_sync(self, in_flight: InFlightJob, slot: Slot) -> None:
        job, asked_at = in_flight.delivery.job, self._clock()

        def hold(terms: LeaseTerms) -> LeaseGuard:
            guard = LeaseGuard(terms.lease, asked_at=asked_at, seconds=terms.seconds, clock=self._clock)
            self._in_flight.grant(in_flight, guard)
            return guard

        request = ClaimRequest(key=job.key, worker=self._id, free_slots=self._room())
        reply = await self._link.claim(job.shard, request, on_lease=hold)
        match reply:
            case Granted():
                guard = in_flight.guard or hold(LeaseTerms(lease=reply.lease, seconds=reply.lease_seconds))
                with _traced(job) as spanned:
                    finished = await self._synced(job, reply, slot, guard)
                    _note(spanned, finished)
                await self._finish(in_flight, finished)
            case Busy(retry_seconds=seconds):
                await in_flight.delivery.give_back(after_seconds=seconds)
            case Gone(lease=lease):
                await in_flight.delivery.finish(lease=lease)
            case _:
                assert_never(reply)

    async def _synced(self, job: Job, granted: Granted, slot: Slot, guard: LeaseGuard) -> SyncReport:
        # A failure that a sync didn't foresee concerns its parent alone.
        with crash_logged("worker.sync_crashed", passing=(LeaseLost,), key=str(job.key)) as crash:
            return await guard.bound(self._sync(granted, slot, guard))
        syncs = numbers.of(job.key.controller)
        syncs.crashes += 1
        syncs.results["retry"] += 1
        return SyncReport(key=job.key, lease=granted.lease, result="retry", fault=Fault.CRASHED, message=crash.problem)

    async def _finish(self, in_flight: InFlightJob, finished: SyncReport) -> None:
        if in_flight.guard is not None:
            in_flight.guard.check()
        delivery = in_flight.delivery
        await self._link.report(delivery.job.shard, finished)
        await delivery.finish(lease=finished.lease)

    async def _give_up(self, in_flight: InFlightJob) -> None:
        """Let another worker have a job that there is no time for.

        Its lease goes with it, so that nobody waits until that expires.
        """
        with suppress(Unavailable, LeaseLost):
            delivery, guard = in_flight.delivery, in_flight.guard
            if guard is None:
                await delivery.give_back()
            else:
                # Nobody will know what it wrote: the wait gives the watcher's cache time to see that.
                stopped = SyncReport(key=delivery.job.key, lease=guard.lease, result="throttled", after_seconds=_STOPPED_SECONDS)
                await self._finish(in_flight, replace(stopped, fault=Fault.WORKER_STOPPED))


def _traced(job: Job) -> AbstractContextManager[Span]:
    """The job as a span below that of the mark which queued it. A timer's mark has none: then a trace begins here."""
    return span("job", traceparent=job.traceparent, attributes={fields.KEY: str(job.key), fields.REASON: job.reason})


def _note(spanned: Span, finished: SyncReport) -> None:
    spanned.set(fields.OUTCOME, finished.result)
    if finished.result != "done":
        spanned.fail(f"{finished.reason}: {finished.message}")
