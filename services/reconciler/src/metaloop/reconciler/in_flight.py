"""The jobs in flight on this worker, and how they and their leases are kept alive."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from metaloop.common.bus.links import Delivery, WorkerLink
from metaloop.common.bus.messages import HeldLease, Renewal
from metaloop.common.errors import Unavailable
from metaloop.common.job import JobKey
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.waiting import is_set_within
from metaloop.reconciler.lease import Clock, LeaseGuard

log = get_logger()

_RENEWALS_PER_ACK_WAIT = 3
_AGAIN_SECONDS = 0.3


@dataclass(slots=True, eq=False, kw_only=True)
class InFlightJob:
    """A job in this worker's hands."""

    delivery: Delivery
    guard: LeaseGuard | None = None
    """There once its claim was granted."""


class InFlightJobs:
    """All jobs in this worker's hands, each key once."""

    def __init__(self, link: WorkerLink, *, worker: str, ack_wait_seconds: float, room: Callable[[], int], clock: Clock) -> None:
        self._link = link
        self._worker = worker
        self._ack_wait_seconds = ack_wait_seconds
        """The shortest time that something in flight lives without a renewal, as far as is known."""
        self._room = room
        self._clock = clock
        self._jobs: dict[JobKey, InFlightJob] = {}
        self._shards: set[str] = set()
        """The shards whose jobs came here: their watchers are told of our free slots, also while we hold none of their
        leases."""
        self._unanswered: set[str] = set()
        """The shards whose watcher didn't answer the last renewal."""
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[InFlightJob]:
        return iter(self._jobs.values())

    def __contains__(self, key: JobKey) -> bool:
        return key in self._jobs

    def add(self, delivery: Delivery) -> InFlightJob:
        """The job of a delivery, in flight from now on."""
        job = self._jobs[delivery.job.key] = InFlightJob(delivery=delivery)
        self._shards.add(delivery.job.shard)
        return job

    def grant(self, job: InFlightJob, guard: LeaseGuard) -> None:
        """Have a job's lease renewed from now on, in the rhythm of the shortest lease."""
        job.guard = guard
        if guard.seconds < self._ack_wait_seconds:
            self._ack_wait_seconds = guard.seconds
            self._wake.set()

    def remove(self, job: InFlightJob) -> None:
        """Have a job in flight no longer."""
        del self._jobs[job.delivery.job.key]

    def held_in(self, shard: str) -> Renewal:
        """What a shard's watcher should know of this worker: the leases that are still valid, and the free slots."""
        leases = [
            HeldLease(job.delivery.job.key, job.guard.lease, job.guard.seconds)
            for job in self._jobs.values()
            if job.guard is not None and job.guard.is_valid and job.delivery.job.shard == shard
        ]
        return Renewal(worker=self._worker, free_slots=self._room(), leases=leases)

    async def keep_alive(self) -> None:
        """Renew jobs and leases until cancelled.

        That is three times in `ack_wait` or in the shortest lease, at once after a reconnection, and soon again where
        it failed.
        """
        with self._link.on_reconnect(self._wake.set):
            while True:
                worked = await self._renew_all()
                pause = self._ack_wait_seconds / _RENEWALS_PER_ACK_WAIT if worked else _AGAIN_SECONDS
                await is_set_within(self._wake, pause)
                self._wake.clear()

    async def _renew_all(self) -> bool:
        """Whether every watcher answered."""
        self._end_lost()
        # Leases before jobs: a lease must be counted from before the moment from which the stream counts `ack_wait`.
        async with asyncio.TaskGroup() as tasks:
            renewals = [tasks.create_task(self._renew_shard(shard)) for shard in tuple(self._shards)]
            await asyncio.sleep(0)
            try:
                for job in tuple(self._jobs.values()):
                    await job.delivery.keep_alive()
            except Unavailable:
                return False
        return all(renewal.result() for renewal in renewals)

    def _end_lost(self) -> None:
        """End the work under leases that ran out while the machine was suspended: timers stood still meanwhile."""
        for job in self._jobs.values():
            if job.guard is not None and not job.guard.is_valid:
                job.guard.lose()

    async def _renew_shard(self, shard: str) -> bool:
        sent_at = self._clock()
        guards = {job.guard.lease: job.guard for job in self._jobs.values() if job.guard is not None}
        try:
            lost = await self._link.renew(shard, renewal := self.held_in(shard))
        except Unavailable as error:
            if shard not in self._unanswered:
                log.warning("worker.renewal_failed", **{fields.SHARD: shard, fields.ERROR: str(error)})
            self._unanswered.add(shard)
            return False
        self._unanswered.discard(shard)
        for held in renewal.leases:
            if held.lease in lost:
                guards[held.lease].lose()
            else:
                guards[held.lease].extend(asked_at=sent_at)
        return True
