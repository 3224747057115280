"""The work queue as the rest of the watcher uses it: its state with a clock, and a wake-up for the dispatcher.

Every call is made at the time of the clock, and whatever may let a job go sets `wakeup`.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from metaloop.common.bus.messages import Renewal
from metaloop.common.job import ControllerId, Job, JobKey
from metaloop.common.machine import monotonic, unique_token
from metaloop.common.objects.resource import ResourceId
from metaloop.common.observation import Busy, Gone
from metaloop.common.report import SyncReport, Write
from metaloop.common.telemetry import fields
from metaloop.common.telemetry.traces import span
from metaloop.watcher.core.entry import NO_VERSIONS, Entry, Lease, Mark
from metaloop.watcher.core.fair_queue import Flow, MarkClass
from metaloop.watcher.core.gate import CacheProgress
from metaloop.watcher.core.last_syncs import LastSync
from metaloop.watcher.core.limits import Counts, Limits
from metaloop.watcher.core.parking import IsBehind
from metaloop.watcher.core.queue_state import QueueState

Clock: TypeAlias = Callable[[], float]

__all__ = ["Clock", "MarkClass", "WorkQueue"]


class WorkQueue:
    """The units of work of one shard: marked by the router, handed out by the dispatcher."""

    def __init__(self, *, shard: str, cache: CacheProgress, is_behind: IsBehind, limits: Limits, clock: Clock = monotonic) -> None:
        self.clock = clock
        self.wakeup = asyncio.Event()
        """Set whenever a job may go, or a timer may be due earlier than before. The dispatcher clears it."""
        self._shard = shard
        self._cache = cache
        self._is_behind = is_behind
        self._limits = limits
        self._state = self._new_state()

    def begin_term(self) -> None:
        """Forget every key, lease and controller, but not which writes the cache has yet to see.

        A leader term begins from the leases that workers hold and from marking every parent.
        """
        former, self._state = self._state, self._new_state()
        for key, writes in former.awaited():
            self._state.await_writes(key, writes, now=self.clock())

    def _new_state(self) -> QueueState:
        epoch = unique_token()[:16]  # no earlier term of any watcher had it
        return QueueState(shard=self._shard, epoch=epoch, cache=self._cache, is_behind=self._is_behind, limits=self._limits)

    # -- from the router -----------------------------------------------------------------------------------------------

    def mark(self, key: JobKey, klass: MarkClass, reason: str, *, version: int = 0) -> None:
        """Have `key` run, or run once more if it is leased.

        `version` is what the parent came to, if it is the parent that changed. Where traces are on, one begins here and
        the job carries it on.
        """
        with span("mark") as marked:
            if marked.traceparent:
                marked.set(fields.KEY, str(key))
                marked.set(fields.REASON, reason)
            versions = frozenset((version,)) if version else NO_VERSIONS
            now = self.clock()
            self._state.mark(key, Mark(klass=klass, reason=reason, traceparent=marked.traceparent, versions=versions, since=now), now=now)
        self.wakeup.set()

    def mark_later(self, key: JobKey, *, quiet_seconds: float, within_seconds: float) -> None:
        """Have `key` run once no such call came for so long, but in time after the first, unless it runs before."""
        self._state.mark_later(key, quiet_seconds=quiet_seconds, within_seconds=within_seconds, now=self.clock())
        self.wakeup.set()

    def forget(self, key: JobKey) -> None:
        """Stop the timers of `key` and drop its mark: its parent is gone."""
        self._state.forget(key)

    def progress(self, resource: ResourceId, namespace: str, name: str) -> None:
        """Let keys run that waited for an event of this object. Call it for each event, once it is cached."""
        if self._state.gated and self._state.progress((resource, namespace, name), now=self.clock()):
            self.wakeup.set()

    def set_controller(self, controller: ControllerId, *, resync_seconds: float | None = None, max_concurrent: int | None = None) -> None:
        """Set the resync period of a controller's keys, and how many may be in flight; None for no resync, no limit."""
        self._state.set_controller(controller, resync_seconds=resync_seconds, max_concurrent=max_concurrent, now=self.clock())
        self.wakeup.set()

    def forget_controller(self, controller: ControllerId) -> None:
        """Forget all keys of a controller."""
        self._state.forget_controller(controller)

    # -- from the ownership handover -----------------------------------------------------------------------------------

    def block(self, controller: ControllerId) -> None:
        """Hand out no key of a controller until it is unblocked. Its keys can be marked, and live leases go on."""
        self._state.block(controller)

    def unblock(self, controller: ControllerId) -> None:
        """Hand out the keys of a controller again."""
        self._state.unblock(controller)
        self.wakeup.set()

    def is_leased(self, controller: ControllerId) -> bool:
        """Whether a worker holds a key of a controller."""
        return self._state.is_leased(controller)

    # -- towards the stream --------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Do what is due."""
        self._state.advance(self.clock())

    def next_wakeup(self) -> float | None:
        """When to `advance` next, unless `wakeup` is set before; None where no timer is set."""
        return self._state.next_wakeup()

    def take(self) -> Job | None:
        """The job to publish next; None where the window is full or nothing may go. Ask until it is None."""
        return self._state.take(self.clock())

    def stored(self, key: JobKey) -> None:
        """The stream took the job."""
        self._state.stored(key, now=self.clock())

    def refused(self, key: JobKey) -> None:
        """The stream holds an older job of the key, or one that nobody may claim now."""
        self._state.refused(key, now=self.clock())
        self.wakeup.set()  # it no longer counts in the window

    def unknown(self, key: JobKey) -> None:
        """It is unknown whether the stream took the job."""
        self._state.unknown(key, now=self.clock())

    def offer_all_again(self) -> None:
        """Offer every queued job again: the stream may have lost them."""
        self._state.offer_all_again()
        self.wakeup.set()

    # -- from the workers ----------------------------------------------------------------------------------------------

    def claim(self, key: JobKey, *, worker: str, slots: int) -> Lease | Busy | Gone:
        """A new lease for `worker`, or why there is none; `slots` is how many more jobs it can take.

        The caller answers a lease with what the cache holds at this moment.
        """
        now = self.clock()
        reply = self._state.claim(key, worker=worker, now=now)
        self._state.set_slots(worker, slots, now=now)
        self.wakeup.set()
        return reply

    def dismiss(self, lease: Lease) -> None:
        """Forget the key of a lease just made, as there is nothing to sync. The lease is over with its receipt."""
        self._state.dismiss(lease)

    def renew(self, renewal: Renewal) -> list[str]:
        """The leases of a worker that are lost. Its others live on."""
        now = self.clock()
        self._state.set_slots(renewal.worker, renewal.free_slots, now=now)
        lost = [held.lease for held in renewal.leases if not self._state.renew(held, worker=renewal.worker, now=now)]
        self.wakeup.set()
        return lost

    def holds(self, lease: str, key: JobKey) -> bool:
        """Whether a lease is alive, and for this key."""
        return self._state.holds(lease, key)

    def report(self, report: SyncReport) -> None:
        """A worker reports how its sync ended."""
        self._state.report(report, now=self.clock())
        self.wakeup.set()

    def receipt(self, lease: str) -> None:
        """The server confirms that the job of a lease is out of the stream."""
        self._state.receipt(lease, now=self.clock())
        self.wakeup.set()

    # -- for inspection ------------------------------------------------------------------------------------------------

    def entries(self) -> Iterator[Entry]:
        """All entries, to be read only."""
        return self._state.entries()

    def entry(self, key: JobKey) -> Entry | None:
        """The entry of a key, to be read only; None for a blank one."""
        return self._state.entry(key)

    def waiting_by_controller(self) -> dict[ControllerId, int]:
        """How many keys of each controller wait for their turn."""
        return {controller: flow.waiting for controller, flow in self._state.flows.items()}

    def in_flight_by_controller(self) -> dict[ControllerId, int]:
        """How many keys of each controller are offered to workers, or held by one."""
        return {controller: flow.in_flight for controller, flow in self._state.flows.items()}

    def leases(self) -> Iterator[Entry]:
        """The entries that a worker holds, to be read only."""
        return iter(self._state.leases)

    def last_syncs(self, parent: JobKey) -> Iterator[tuple[JobKey, LastSync]]:
        """How the last syncs of a parent and of its parts ended, as far as that is remembered."""
        return self._state.last_syncs.of(parent)

    def awaited(self, key: JobKey) -> list[Write]:
        """The writes that the cache has yet to see before a key runs again."""
        return next((writes for waiter, writes in self._state.awaited() if waiter == key), [])

    def flows(self) -> Mapping[ControllerId, Flow[Entry]]:
        """The waiting keys of each controller, and what is counted of it, to be read only."""
        return self._state.flows

    @property
    def counts(self) -> Counts:
        """What happened so far in this term."""
        return self._state.counts

    @property
    def waiting(self) -> int:
        """How many keys wait for their turn."""
        return self._state.waiting

    @property
    def gated(self) -> int:
        """How many keys may not run until the cache has seen their writes."""
        return self._state.gated

    @property
    def unclaimed(self) -> int:
        """How many jobs lie in the stream and wait for a worker, as far as is known."""
        return self._state.offers.unclaimed

    @property
    def leased(self) -> int:
        """How many keys a worker holds."""
        return len(self._state.leases)

    @property
    def workers(self) -> int:
        """How many workers have said something lately."""
        return self._state.offers.window.workers
