"""A queue in hand, with short words for what happens to it."""

from dataclasses import replace

from metaloop.common.bus.messages import HeldLease
from metaloop.common.faults import Result
from metaloop.common.job import ControllerId, Job, JobKey
from metaloop.common.objects.resource import ResourceId
from metaloop.common.observation import Busy, Gone
from metaloop.common.report import Write
from metaloop.common.testing.builders import SHARD, job_key, sync_report
from metaloop.common.testing.clock import FakeClock
from metaloop.watcher.core.entry import Entry, Lease, Mark
from metaloop.watcher.core.fair_queue import MarkClass
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.core.queue_state import QueueState

KEY = job_key()
LIMITS = Limits()


class FakeProgress:
    """A cache that has seen what it was told to have seen."""

    def __init__(self) -> None:
        self.seen: set[Write] = set()
        self.is_hushed = False
        """Whether nothing is heard of any resource."""

    def has_seen(self, write: Write) -> bool:
        return write in self.seen

    def is_silent(self, resource: ResourceId, *, since: float) -> bool:
        del resource, since
        return self.is_hushed


class QueueInHand:
    """A queue, its clock, and a cache that sees writes when it is told to."""

    def __init__(self, *, epoch: str = "epoch") -> None:
        self.clock = FakeClock()
        self.cache = FakeProgress()
        self.behind: set[ControllerId] = set()
        """The controllers whose watches catch up."""
        self.restart(epoch=epoch)

    def restart(self, *, epoch: str) -> None:
        """The queue of the watcher's next life, at the same time and with the same cache."""
        self.queue = QueueState(shard=SHARD, epoch=epoch, cache=self.cache, is_behind=self._is_behind, limits=LIMITS)

    def regain_term(self) -> None:
        """The same watcher leads again."""
        former = self.queue
        self.restart(epoch="regained")
        for key, writes in former.awaited():
            self.queue.await_writes(key, writes, now=self.clock())

    def _is_behind(self, key: JobKey, now: float) -> bool:
        del now
        return key.controller in self.behind

    def mark(self, key: JobKey = KEY, klass: MarkClass = MarkClass.CHANGED, reason: str = "it changed") -> None:
        self.queue.mark(key, Mark(klass=klass, reason=reason, since=self.clock()), now=self.clock())

    def wait(self, seconds: float) -> None:
        """Let time pass, and what is due happen when it is due."""
        until = self.clock() + seconds
        while (due := self.queue.next_wakeup()) is not None and due <= until:
            self.clock.now = max(self.clock.now, due)
            self.queue.advance(self.clock())
        self.clock.now = until

    def take(self) -> Job | None:
        return self.queue.take(self.clock())

    def take_all(self) -> list[JobKey]:
        return [job.key for job in iter(self.take, None)]

    def claim(self, key: JobKey = KEY, *, worker: str = "worker") -> Lease | Busy | Gone:
        return self.queue.claim(key, worker=worker, now=self.clock())

    def lease(self, key: JobKey = KEY, *, worker: str = "worker") -> Lease:
        reply = self.claim(key, worker=worker)
        assert isinstance(reply, Lease), reply
        return reply

    def lease_of(self, key: JobKey = KEY) -> Lease:
        """The lease that there is."""
        lease = self.entry(key).lease
        assert lease is not None
        return lease

    def leased(self, key: JobKey = KEY, *, worker: str = "worker") -> Lease:
        """The lease of a key that was marked, published and claimed."""
        self.mark(key)
        assert key in self.take_all()
        self.queue.stored(key, now=self.clock())
        return self.lease(key, worker=worker)

    def report(
        self, lease: Lease, key: JobKey = KEY, *, result: Result = "done", writes: tuple[Write, ...] = (),
        after: float | None = None, resync_after: float | None = None,
    ) -> None:  # fmt: skip
        told = replace(sync_report(key, lease.id, result=result, writes=writes), after_seconds=after, resync_after_seconds=resync_after)
        self.queue.report(told, now=self.clock())

    def receipt(self, lease: Lease) -> None:
        self.queue.receipt(lease.id, now=self.clock())

    def finish(
        self, lease: Lease, key: JobKey = KEY, *, result: Result = "done", writes: tuple[Write, ...] = (),
        after: float | None = None, resync_after: float | None = None,
    ) -> None:  # fmt: skip
        self.report(lease, key, result=result, writes=writes, after=after, resync_after=resync_after)
        self.receipt(lease)

    def renew(self, lease: Lease, key: JobKey = KEY, *, worker: str = "worker") -> bool:
        return self.queue.renew(HeldLease(key, lease.id, lease.seconds), worker=worker, now=self.clock())

    def see(self, write: Write) -> None:
        """The cache takes the event of a write."""
        self.cache.seen.add(write)
        self.queue.progress((write.resource, write.namespace, write.name), now=self.clock())

    def entry(self, key: JobKey = KEY) -> Entry:
        entry = self.queue.entry(key)
        assert entry is not None
        return entry
