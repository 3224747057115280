"""The jobs in this worker's hands, and how their messages and leases are kept alive."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from metaloop.common.bus.channels import renew
from metaloop.common.bus.connect import Bus
from metaloop.common.bus.messages import HeldLease, Renewal
from metaloop.common.bus.pull import Delivery
from metaloop.common.errors import Unavailable
from metaloop.common.job import JobKey
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.waiting import is_set_within
from metaloop.reconciler.lease import Clock, LeaseGuard

log = get_logger()

_RENEWALS_PER_ACK_WAIT = 3
_AGAIN_SECONDS = 0.3


@dataclass(slots=True, eq=False, kw_only=True)
class Held:
    """A job in our hands; its guard is there once its claim was granted."""

    delivery: Delivery
    guard: LeaseGuard | None = None


class Holdings:
    """All jobs in our hands, each key once."""

    def __init__(self, bus: Bus, *, worker: str, ack_wait_seconds: float, room: Callable[[], int], clock: Clock) -> None:
        self._bus = bus
        self._worker = worker
        self._ack_wait_seconds = ack_wait_seconds
        self._room = room
        self._clock = clock
        self._held: dict[JobKey, Held] = {}
        self._shards: set[str] = set()
        """The shards whose jobs we saw: their watchers hear of our free slots, even while we hold nothing."""
        self._unanswered: set[str] = set()
        """The shards whose watcher didn't answer our last renewal."""
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: JobKey) -> bool:
        return key in self._held

    def take(self, delivery: Delivery) -> Held:
        """Hold a job from now on."""
        held = self._held[delivery.job.key] = Held(delivery=delivery)
        self._shards.add(delivery.job.shard)
        return held

    def drop(self, held: Held) -> None:
        """Hold it no longer."""
        del self._held[held.delivery.job.key]

    def in_shard(self, shard: str) -> Renewal:
        """What a shard's watcher should know of us: the leases that are still ours, and our free slots."""
        leases = [
            HeldLease(held.delivery.job.key, held.guard.lease)
            for held in self._held.values()
            if held.guard is not None and held.guard.is_valid and held.delivery.job.shard == shard
        ]
        return Renewal(worker=self._worker, slots=self._room(), leases=leases)

    async def keep_alive(self) -> None:
        """Renew messages and leases for ever: at intervals, at once after a reconnection, and sooner again where it didn't work."""
        with self._bus.on_reconnect(self._wake.set):
            while True:
                worked = await self._renew_all()
                pause = self._ack_wait_seconds / _RENEWALS_PER_ACK_WAIT if worked else _AGAIN_SECONDS
                await is_set_within(self._wake, pause)
                self._wake.clear()

    async def _renew_all(self) -> bool:
        """Whether every watcher answered."""
        # Leases before messages: a lease must be counted from before the moment from which the server counts `ack_wait`.
        async with asyncio.TaskGroup() as tasks:
            renewals = [tasks.create_task(self._renew_shard(shard)) for shard in tuple(self._shards)]
            await asyncio.sleep(0)
            try:
                for held in tuple(self._held.values()):
                    await held.delivery.keep()
            except Unavailable:
                return False
        return all(renewal.result() for renewal in renewals)

    async def _renew_shard(self, shard: str) -> bool:
        sent_at = self._clock()
        guards = {held.guard.lease: held.guard for held in self._held.values() if held.guard is not None}
        try:
            lost = await renew(self._bus, shard, renewal := self.in_shard(shard))
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
                guards[held.lease].extend(ends=sent_at + self._ack_wait_seconds)
        return True
