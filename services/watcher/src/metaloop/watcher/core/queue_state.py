"""The state of the work queue: what is dirty, in flight or waiting for a timer, and what goes next. Fair and stingy.

The queue of all units of work, as client-go's workqueue is one, but with its workers behind a message stream that may
lose, duplicate and reorder. A pure state machine: it is told what happened and when, and returns what to publish and
when to ask again.

    mark      any event, any timer                       the key must run (again)
    take      the window has room, the key is next       its job is to be published                     Add
    claim     a worker took the job from the stream      it has a lease, and observes the world *now*   Get
    report    the worker says how the sync ended      ┐  both: the sync is over; what marked the key
    receipt   the server says that the job is removed ┘  meanwhile makes it wait again                  Done

Properties:

- **stingy**: a key waits, is queued, or is leased; never two of these. Marks of a key that waits or is queued are one.
  Marks of a key that is leased make it dirty, and it runs once more. A claim observes the world at that moment, so it
  answers every mark before it.
- **single**: a lease lives until it is over or was not renewed for as long as was granted. Until then other claims are
  told to come back. A worker measures that time from before it sent its last confirmed renewal, so its own view of the
  lease ends first.
- **at least once**: whatever becomes of a message, its key stays queued here and is offered again until a worker claims
  it. A lease that expires gives its mark back. A second offer of a job that is still in the stream is refused, and
  costs nothing.
- **read your writes**: after a sync the key is not handed out before the cache has seen what the sync wrote, or two
  seconds have passed (thirty while the cache hears nothing). So the echoes of K writes cost one sync, not K. That holds
  for a report, too, that comes after its lease was over, and in the next term of the same watcher.
- **put off, not in the way**: a key whose watches catch up is parked. It takes no place in the window, so others go.
- **fair**: see `fair_queue.py`.
"""

from collections.abc import Iterable, Iterator

from metaloop.common.bus.messages import HeldLease
from metaloop.common.job import ControllerId, Job, JobKey
from metaloop.common.observation import Busy, Gone
from metaloop.common.report import SyncReport, Write
from metaloop.watcher.core.backoff import try_after
from metaloop.watcher.core.entry import PUT_OFF, Entry, Lease, Mark, Offer, Purpose, Stage, stronger
from metaloop.watcher.core.entry_timers import MARKS_OF_TIMERS, EntryTimers
from metaloop.watcher.core.fair_queue import FairQueue, Flow, MarkClass
from metaloop.watcher.core.gate import CacheProgress, Gate, ObjectName
from metaloop.watcher.core.last_syncs import LastSync, LastSyncs
from metaloop.watcher.core.leases import Leases
from metaloop.watcher.core.limits import Counts, Limits
from metaloop.watcher.core.offers import Offers
from metaloop.watcher.core.parking import IsBehind, ParkedEntries

_GATED = Busy(retry_seconds=0.05)
_FULL = Busy(retry_seconds=0.25)
_LEAST_BUSY_SECONDS = 0.1
_MOST_BUSY_SECONDS = 1.0
_NOTHING_TO_DO = Gone(reason="nothing marked it since its last sync")


class QueueState:
    """All keys of one shard during one leader term, which `epoch` names."""

    def __init__(self, *, shard: str, epoch: str, cache: CacheProgress, is_behind: IsBehind, limits: Limits) -> None:
        self.counts = Counts()
        self.last_syncs = LastSyncs(limit=limits.remembered_syncs)
        self._shard = shard
        self._limits = limits
        self._entries: dict[JobKey, Entry] = {}
        """Every key that is not blank."""
        self.flows: dict[ControllerId, Flow[Entry]] = {}
        """Of each controller, to be read only by others."""
        self._order: FairQueue[Entry] = FairQueue()
        """The waiting entries, and no others. Queued and leased entries count as in flight in it."""
        self._parking = ParkedEntries(is_behind)
        """The parked entries."""
        self.offers = Offers()
        self.leases = Leases(epoch=epoch, seconds=limits.lease_seconds)
        """The leased entries, to be read only by others."""
        self._gate: Gate[Entry] = Gate(cache)
        """The entries whose writes the cache has not seen yet, idle or gated."""
        self._timers = EntryTimers()
        """Of entries that are not blank."""

    def awaited(self) -> Iterator[tuple[JobKey, list[Write]]]:
        """The keys that wait until the cache has seen writes, and these writes."""
        return ((entry.key, writes) for entry, writes in self._gate.awaited())

    def await_writes(self, key: JobKey, writes: Iterable[Write], *, now: float) -> None:
        """Have a key wait until the cache has seen these writes of a sync that is over."""
        entry = self._entry_of(key)
        self._close_gate(entry, writes, now)
        self._drop_if_blank(entry)

    # -- what marks keys -----------------------------------------------------------------------------------------------

    def mark(self, key: JobKey, mark: Mark, *, now: float) -> None:
        """Have `key` run, or run once more where it is leased."""
        self.counts.marks += 1
        entry = self._entry_of(key)
        if (news := entry.news_in(mark)) is None:
            return
        before, entry.mark = entry.mark, stronger(entry.mark, news)
        entry.flow.numbers.adds += before is None
        if entry.stage is Stage.IDLE:
            self._wait(entry, entry.mark, now)
        elif entry.stage is Stage.WAITING and before is not None and entry.mark.klass is not before.klass:
            self._order.discard(entry, entry.flow)
            self._order.push(entry, entry.flow, entry.mark.klass, now=now)

    def mark_later(self, key: JobKey, *, quiet_seconds: float, within_seconds: float, now: float) -> None:
        """Have `key` run once no such call came for so long, but in time after the first, unless it runs before."""
        self._timers.put_off(self._entry_of(key), due=now + quiet_seconds, at_latest=now + within_seconds)

    def forget(self, key: JobKey) -> None:
        """Stop the timers of `key` and drop its mark: its parent is gone.

        New marks count, and a worker that holds the key finishes.
        """
        entry = self._entries.get(key)
        if entry is not None:
            self._forget(entry)

    def set_controller(self, controller: ControllerId, *, resync_seconds: float | None, max_concurrent: int | None, now: float) -> None:
        """Set the resync period of a controller's keys, and how many may be in flight; None for no resync, no limit."""
        flow = self._flow_of(controller)
        self._order.limit(flow, max_concurrent)
        if not self._timers.set_resync_period(controller, resync_seconds):
            return
        for entry in [entry for entry in self._entries.values() if entry.flow is flow]:
            entry.stop(Purpose.RESYNC)
            self._timers.arm_resync(entry, now=now)

    def block(self, controller: ControllerId) -> None:
        """Hand out no key of a controller until it is unblocked. Its keys can be marked, and live leases go on."""
        self._flow_of(controller).is_blocked = True

    def unblock(self, controller: ControllerId) -> None:
        """Hand out the keys of a controller again."""
        self._order.unblock(self._flow_of(controller))

    def is_leased(self, controller: ControllerId) -> bool:
        """Whether a worker holds a key of a controller."""
        return any(entry.key.controller == controller for entry in self.leases)

    def forget_controller(self, controller: ControllerId) -> None:
        """Forget all keys of a controller."""
        self._timers.set_resync_period(controller, None)
        for entry in [entry for key, entry in self._entries.items() if key.controller == controller]:
            self._forget(entry)
        if not any(key.controller == controller for key in self._entries):
            self.flows.pop(controller, None)

    def progress(self, name: ObjectName, *, now: float) -> bool:
        """Whether keys may run that waited for an event of this object. Call it for each event, once it is cached."""
        passing = self._gate.progress(name)
        for entry in passing:
            entry.stop(Purpose.GATE)
            self._pass_gate(entry, now)
        return bool(passing)

    # -- time ----------------------------------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Do what is due by `now`."""
        while (timer := self._timers.pop_due(now)) is not None:
            self._fire(self._entries[timer.owner], Purpose(timer.purpose), now)
        for entry in self._parking.pop_current(now):
            if entry.mark is not None:
                self._wait(entry, entry.mark, now)

    def next_wakeup(self) -> float | None:
        """When to `advance` next, unless something else happens before."""
        due = [each for each in (self._timers.next_due(), self._parking.next_due()) if each is not None]
        return min(due, default=None)

    # -- towards the stream --------------------------------------------------------------------------------------------

    def take(self, now: float) -> Job | None:
        """The job to publish next; None where the window is full or nothing may go. Ask until it is None."""
        entry = self.offers.take_repeat() or self._take_next(now)
        if entry is None:
            return None
        self.offers.set(entry, Offer.SENT)
        self._timers.expect(entry, by=now + self._limits.answer_seconds)
        self.counts.offers += 1
        return entry.job(self._shard)

    def stored(self, key: JobKey, *, now: float) -> None:
        """The stream took the job."""
        entry = self._queued(key)
        if entry is not None:
            self.offers.set(entry, Offer.STORED)
            self._timers.expect(entry, by=now + self._limits.claim_seconds)

    def refused(self, key: JobKey, *, now: float) -> None:
        """The stream holds an older job of the key, or one that nobody may claim now. The offer is repeated later."""
        self.counts.refusals += 1
        entry = self._queued(key)
        if entry is not None:
            self.offers.set(entry, Offer.REFUSED)
            pause = min(self._limits.refused_seconds * 2**entry.refusals, self._limits.claim_seconds)
            entry.refusals = min(entry.refusals + 1, 10)
            self._timers.expect(entry, by=now + pause)

    def unknown(self, key: JobKey, *, now: float) -> None:
        """It is unknown whether the stream took the job."""
        entry = self._queued(key)
        if entry is not None:
            self._timers.expect(entry, by=now + self._limits.refused_seconds)

    def offer_all_again(self) -> None:
        """Offer every queued job again: the stream may have lost them."""
        for entry in self._entries.values():
            if entry.stage is Stage.QUEUED:
                self.offers.repeat(entry)

    # -- towards the workers -------------------------------------------------------------------------------------------

    def claim(self, key: JobKey, *, worker: str, now: float) -> Lease | Busy | Gone:
        """A new lease for `worker`, or why there is none. Answer it with what the cache holds at this moment."""
        entry = self._entries.get(key)
        if entry is not None and entry.lease is not None:
            refusal = self._end_lease_or_refuse(entry, entry.lease, worker=worker, now=now)
            if refusal is not None:
                self.counts.busy += 1
                return refusal
        if entry is None or entry.mark is None:
            return _NOTHING_TO_DO
        if entry in self._gate:
            return _GATED
        if entry.flow.is_blocked or (entry.is_kept_back and not entry.flow.has_room):
            return _FULL
        self.counts.claims += 1
        return self._lease(entry, self.leases.grant(key), worker=worker, now=now)

    def dismiss(self, lease: Lease) -> None:
        """Forget the key of a lease just made, as there is nothing to sync. The lease is over with its receipt."""
        lease.is_dismissed = True
        if found := self.leases.find(lease.id):
            self._forget(found[0])

    def renew(self, held: HeldLease, *, worker: str, now: float) -> bool:
        """Whether `worker` holds a lease, which then lives on. One of an earlier term is adopted if its key is free."""
        found = self.leases.find(held.lease)
        if found is None:
            return not self.leases.is_of_this_term(held.lease) and self._adopt(held, worker=worker, now=now)
        entry, lease = found
        lease.expires = now + lease.seconds
        if lease.report is None and not lease.has_receipt:
            self._timers.expect(entry, by=lease.expires)
        return True

    def set_slots(self, worker: str, slots: int, *, now: float) -> None:
        """A worker says how many more jobs it can take. One that was silent for too long is not counted on any more."""
        self.offers.window.set_slots(worker, slots, now=now)
        self.offers.window.forget_silent(since=now - self._limits.worker_silence_seconds)

    def holds(self, lease_id: str, key: JobKey) -> bool:
        """Whether a lease is alive, and for this key."""
        return self.leases.find(lease_id, key) is not None

    def report(self, report: SyncReport, *, now: float) -> None:
        """A worker reports how its sync ended."""
        found = self.leases.find(report.lease, report.key)
        if found is None:
            self.counts.stale_messages += 1
            if report.key.controller in self.flows:
                self.await_writes(report.key, report.writes, now=now)  # they count, although its lease was over
            return
        entry, lease = found
        lease.report = report
        self._finish_or_wait(entry, lease, now)

    def receipt(self, lease_id: str, *, now: float) -> None:
        """The server confirms that the job of a lease is out of the stream."""
        found = self.leases.find(lease_id)
        if found is None:
            self.counts.stale_messages += 1
            return
        entry, lease = found
        lease.has_receipt = True
        self._finish_or_wait(entry, lease, now)

    # -- for inspection ------------------------------------------------------------------------------------------------

    def entries(self) -> Iterator[Entry]:
        """All entries, to be read only."""
        return iter(self._entries.values())

    def entry(self, key: JobKey) -> Entry | None:
        """The entry of a key, to be read only; None for a blank one."""
        return self._entries.get(key)

    @property
    def waiting(self) -> int:
        """How many keys wait for their turn, or until the watches that they depend on have caught up."""
        return len(self._order) + len(self._parking)

    @property
    def gated(self) -> int:
        """How many keys may not run until the cache has seen their writes."""
        return len(self._gate)

    # -- stages --------------------------------------------------------------------------------------------------------

    def _wait(self, entry: Entry, mark: Mark, now: float) -> None:
        """Have a marked entry wait in the order, or at the gate."""
        if entry in self._gate:
            entry.stage = Stage.GATED
            return
        entry.stage = Stage.WAITING
        self._order.push(entry, entry.flow, mark.klass, now=now)

    def _pass_gate(self, entry: Entry, now: float) -> None:
        if entry.stage is Stage.GATED and entry.mark is not None:
            self._wait(entry, entry.mark, now)
        else:
            self._drop_if_blank(entry)

    def _take_next(self, now: float) -> Entry | None:
        if not self.offers.has_room:
            return None
        share = self._limits.jobs_of_one_controller * max(1, self.offers.window.workers)
        if share != self._order.share:
            self._order.set_share(share, self.flows.values())
        while (entry := self._order.pop(now)) is not None and self._parking.park_if_behind(entry, now):
            self._order.release(entry.flow)
        if entry is not None:
            entry.stage = Stage.QUEUED
        return entry

    def _lease(self, entry: Entry, held: HeldLease, *, worker: str, now: float) -> Lease:
        self._leave_for_lease(entry)
        serves = entry.mark or Mark(klass=MarkClass.RETRY, reason="held when the watcher started", since=now)
        lease = self.leases.begin(entry, held, worker=worker, serves=serves, now=now)
        entry.stage, entry.mark, entry.refusals = Stage.LEASED, None, 0
        for purpose in (Purpose.RETRY, *PUT_OFF) if entry.timers else ():
            entry.stop(purpose)
        self._timers.expect(entry, by=lease.expires)
        return lease

    def _leave_for_lease(self, entry: Entry) -> None:
        if entry.stage is Stage.QUEUED:
            self.offers.withdraw(entry)
            return
        self._stop_waiting(entry)
        self._order.enter(entry.flow)

    def _stop_waiting(self, entry: Entry) -> None:
        self._order.discard(entry, entry.flow)
        self._parking.discard(entry)

    def _adopt(self, held: HeldLease, *, worker: str, now: float) -> bool:
        """Whether the key was free, and is held now by a lease of an earlier term. Its mark stays: it is dirty."""
        entry = self._entry_of(held.key)
        if entry.lease is not None:
            return False
        self.counts.leases_adopted += 1
        dirty = entry.mark
        self._lease(entry, held, worker=worker, now=now)
        entry.mark = dirty
        return True

    def _end_lease_or_refuse(self, entry: Entry, lease: Lease, *, worker: str, now: float) -> Busy | None:
        """Handle another claim for a leased key: end the lease if it is over in truth, else say when to come back."""
        if lease.report is not None:
            # The job came back although its sync is over: its acknowledgement was lost.
            self._finish(entry, lease, now)
        elif lease.expires <= now:
            self._expire(entry, lease)
        elif lease.worker == worker:
            # A worker never claims a key that it works on: our reply did not reach it, or its report did not reach us.
            # In case it wrote something, the cache gets time to see that.
            lease.worker, lease.expires = "", min(lease.expires, now + self._limits.gate_seconds)
            self._timers.expect(entry, by=lease.expires)
            return Busy(retry_seconds=self._limits.gate_seconds)
        else:
            return Busy(retry_seconds=min(max(lease.expires - now, _LEAST_BUSY_SECONDS), _MOST_BUSY_SECONDS))
        return None

    def _expire(self, entry: Entry, lease: Lease) -> None:
        """Queue the key again. The stream still has its job; if not, the next offer puts it there."""
        self.counts.leases_expired += 1
        self.leases.end(lease)
        entry.stage, entry.mark = Stage.QUEUED, stronger(entry.mark, lease.serves)
        self.offers.set(entry, Offer.REFUSED)
        self.offers.repeat(entry)

    def _finish_or_wait(self, entry: Entry, lease: Lease, now: float) -> None:
        if lease.is_over:
            self._finish(entry, lease, now)
        else:
            self._timers.expect(entry, by=now + self._limits.receipt_seconds)

    def _finish(self, entry: Entry, lease: Lease, now: float) -> None:
        self.counts.finished += 1
        self.leases.end(lease)
        entry.flow.numbers.worked.observe(now - lease.began)
        if self._limits.remembered_syncs:
            self.last_syncs.add(entry.key, LastSync(served=lease.serves, began=lease.began, ended=now, report=lease.report))
        entry.stage = Stage.IDLE
        entry.stage_timer.due = None
        self._order.release(entry.flow)
        if not lease.is_dismissed:
            entry.learn_writes(lease)
            self._plan_next(entry, lease.report, now)
        if entry.mark is not None:
            self._wait(entry, entry.mark, now)
        else:
            self._drop_if_blank(entry)

    # -- what follows from a report ------------------------------------------------------------------------------------

    def _plan_next(self, entry: Entry, report: SyncReport | None, now: float) -> None:
        entry.failures, wait = try_after(report, failures=entry.failures)
        if wait is not None:
            entry.flow.numbers.retries += 1
            self._timers.set(entry, Purpose.RETRY, due=now + wait)
        self._timers.arm_resync(entry, now=now)
        if report is None:
            return
        if report.resync_after_seconds is not None:
            self._timers.set_if_earlier(entry, Purpose.RESYNC_AFTER, due=now + report.resync_after_seconds)
        self._close_gate(entry, report.writes, now)

    def _close_gate(self, entry: Entry, writes: Iterable[Write], now: float) -> None:
        """Have an entry wait until the cache has seen these writes. A lease that another worker has of it lives on."""
        if not self._gate.close(entry, writes, now=now):
            return
        self.counts.gates_closed += 1
        self._timers.set(entry, Purpose.GATE, due=now + self._limits.gate_seconds)
        if entry.is_kept_back:
            self._stop_waiting(entry)
            entry.stage = Stage.GATED

    # -- timers --------------------------------------------------------------------------------------------------------

    def _fire(self, entry: Entry, purpose: Purpose, now: float) -> None:
        match purpose:
            case Purpose.STAGE:
                self._stage_is_late(entry, now)
            case Purpose.GATE:
                self._gate_is_late(entry, now)
            case _:
                klass, reason = MARKS_OF_TIMERS[purpose]
                self.mark(entry.key, Mark(klass=klass, reason=reason, since=now), now=now)

    def _gate_is_late(self, entry: Entry, now: float) -> None:
        is_over = self._gate.is_closed_since(entry, now - self._limits.silence_seconds)
        if not is_over and self._gate.hears_nothing(entry, since=now - self._limits.gate_seconds):
            self._timers.set(entry, Purpose.GATE, due=now + self._limits.gate_seconds)
            return
        self.counts.gates_timed_out += 1
        self._gate.open(entry)
        self._pass_gate(entry, now)

    def _stage_is_late(self, entry: Entry, now: float) -> None:
        lease = entry.lease
        if entry.stage is Stage.QUEUED:
            self.offers.repeat(entry)
        elif lease is None:
            return
        elif lease.report is not None or lease.has_receipt:
            self.counts.receipts_missed += not lease.has_receipt
            self.counts.reports_missed += lease.report is None
            self._finish(entry, lease, now)
        else:
            self._expire(entry, lease)

    # -- entries -------------------------------------------------------------------------------------------------------

    def _entry_of(self, key: JobKey) -> Entry:
        if (entry := self._entries.get(key)) is None:
            entry = self._entries[key] = Entry(key, self._flow_of(key.controller))
        return entry

    def _flow_of(self, controller: ControllerId) -> Flow[Entry]:
        flow = self.flows.get(controller)
        if flow is None:
            flow = self.flows[controller] = Flow(share=self._order.share)
        return flow

    def _queued(self, key: JobKey) -> Entry | None:
        """The entry of a queued key. None where it was claimed before the answer to its offer came."""
        entry = self._entries.get(key)
        return entry if entry is not None and entry.stage is Stage.QUEUED else None

    def _forget(self, entry: Entry) -> None:
        for purpose in (Purpose.RETRY, Purpose.RESYNC_AFTER, Purpose.RESYNC, *PUT_OFF):
            entry.stop(purpose)
        entry.failures = 0
        if entry.is_kept_back:
            self._stop_waiting(entry)
        if entry.is_kept_back or entry.stage is Stage.GATED:
            entry.stage, entry.mark = Stage.IDLE, None
        if entry.lease is not None:
            entry.mark, entry.lease.is_forgotten = None, True
        self._drop_if_blank(entry)

    def _drop_if_blank(self, entry: Entry) -> None:
        if entry.is_blank and entry not in self._gate:
            del self._entries[entry.key]
