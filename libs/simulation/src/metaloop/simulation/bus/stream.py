"""The job stream of the model: one job for each key, delivered again where nobody speaks of it for too long."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from metaloop.common.bus.messages import OfferOutcome
from metaloop.common.job import Job, JobKey

StoredKey = tuple[str, JobKey]
"""A shard and a key."""


class Consumer(Protocol):
    """Somebody who takes jobs."""

    @property
    def room(self) -> int:
        """How many more jobs it asks for now."""
        ...

    def deliver(self, entry: "Entry") -> None:
        """Send a job to it."""
        ...


@dataclass(slots=True, eq=False)
class Entry:
    """A job in the stream."""

    wire: bytes
    key: StoredKey
    deliveries: int = 0
    """How often it was delivered; only the last delivery counts."""
    timer: asyncio.TimerHandle | None = None
    """When it comes back: set while somebody has it in hand, or it waits to be delivered again."""


class Stream:
    """The jobs, oldest first. Whoever holds one has `ack_wait_seconds` until it is delivered again."""

    def __init__(self, *, ack_wait_seconds: float, later: Callable[..., asyncio.TimerHandle]) -> None:
        self.exists = False
        self._ack_wait_seconds = ack_wait_seconds
        self._later = later
        self._entries: dict[StoredKey, Entry] = {}
        self._ready: dict[StoredKey, Entry] = {}
        """The jobs that wait for a consumer."""
        self._consumers: list[Consumer] = []

    def ensure(self) -> None:
        """Have the stream exist."""
        self.exists = True

    def put(self, job: Job) -> OfferOutcome:
        """Store a job, unless there is one of its key."""
        key = (job.shard, job.key)
        if not self.exists:
            return OfferOutcome.UNKNOWN
        if key in self._entries:
            return OfferOutcome.ALREADY_QUEUED
        self._entries[key] = self._ready[key] = Entry(job.to_bytes(), key)
        self.deliver()
        return OfferOutcome.QUEUED

    def deliver(self) -> None:
        """Send jobs to consumers with room, one after another in turn."""
        while self._ready:
            consumer = next((each for each in self._consumers if each.room > 0), None)
            if consumer is None:
                return
            self._consumers.remove(consumer)
            self._consumers.append(consumer)
            entry = self._ready.pop(next(iter(self._ready)))
            entry.deliveries += 1
            self._expect_again(entry, self._ack_wait_seconds)
            consumer.deliver(entry)

    def finish(self, entry: Entry) -> bool:
        """Remove a job; returns whether it was there."""
        if self._entries.get(entry.key) is not entry:
            return False
        del self._entries[entry.key]
        self._ready.pop(entry.key, None)
        self._forget_timer(entry)
        return True

    def give_back(self, entry: Entry, delivery: int, after_seconds: float) -> None:
        """Deliver a job again after so many seconds."""
        if self._is_in_hand(entry, delivery):
            self._expect_again(entry, after_seconds)

    def keep_alive(self, entry: Entry, delivery: int) -> None:
        """Count the time of a job in hand from now on."""
        if self._is_in_hand(entry, delivery):
            self._expect_again(entry, self._ack_wait_seconds)

    def clear(self, shard: str) -> None:
        """Remove all jobs of a shard."""
        for entry in [entry for entry in self._entries.values() if entry.key[0] == shard]:
            self.finish(entry)

    def wipe(self) -> None:
        """Lose everything."""
        for entry in [*self._entries.values()]:
            self.finish(entry)
        self.exists = False

    def join(self, consumer: Consumer) -> None:
        """Deliver to a consumer, too."""
        if consumer not in self._consumers:
            self._consumers.append(consumer)
        self.deliver()

    def leave(self, consumer: Consumer) -> None:
        """Deliver nothing to a consumer any more."""
        if consumer in self._consumers:
            self._consumers.remove(consumer)

    def _is_in_hand(self, entry: Entry, delivery: int) -> bool:
        return self._entries.get(entry.key) is entry and entry.deliveries == delivery and entry.key not in self._ready

    def _expect_again(self, entry: Entry, seconds: float) -> None:
        self._forget_timer(entry)
        entry.timer = self._later(seconds, self._come_back, entry)

    def _come_back(self, entry: Entry) -> None:
        entry.timer = None
        self._ready[entry.key] = entry
        self.deliver()

    @staticmethod
    def _forget_timer(entry: Entry) -> None:
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
