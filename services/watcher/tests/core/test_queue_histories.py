"""Any history of marks, crashes, losses and stalls: the queue against a model of the stream and of the workers."""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from metaloop.common.job import JobKey
from metaloop.common.report import Write
from metaloop.common.testing.builders import controller_id, job_key, write
from metaloop.watcher.core.entry import Lease, Offer, Purpose, Stage
from metaloop.watcher.core.fair_queue import MarkClass

from .queues import LIMITS, QueueInHand

KEYS = [job_key(f"p{number}", controller=f"c{number}") for number in range(2)]
WORKERS = ["w0", "w1"]
keys = st.sampled_from(KEYS)
workers = st.sampled_from(WORKERS)


@dataclass(eq=False)
class Holder:
    """What a worker believes of a lease of its own."""

    key: JobKey
    worker: str
    lease: Lease
    valid_until: float
    wrote: list[Write] = field(default_factory=list[Write])


_LONG_ENOUGH = (1.1,) * 60 + (60.0,) * 30
"""Beyond the longest backoff, for which a rejected key waits."""


class QueueAmongFailures(RuleBasedStateMachine):
    """`stream` is what the server keeps; `unserved` are the keys marked since the claim of their last finished sync."""

    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.hand = QueueInHand()
        self.stream: set[JobKey] = set()
        self.unserved: set[JobKey] = set()
        self.marked_since_claim: set[JobKey] = set()
        self.holders: list[Holder] = []
        self.versions = 0
        self.lives = 0
        self.awaited: dict[JobKey, tuple[tuple[Write, ...], float]] = {}
        """What each key's last sync wrote, and until when its next waits for that."""

    @initialize(limit=st.sampled_from([None, 1]))
    def limit_one_controller(self, limit: int | None):
        self.hand.queue.set_controller(controller_id("c0"), resync_seconds=50.0, max_concurrent=limit, now=self.hand.clock())

    # -- the world -----------------------------------------------------------------------------------------------------

    @rule(key=keys, klass=st.sampled_from(MarkClass))
    def mark(self, key: JobKey, klass: MarkClass):
        self.hand.mark(key, klass)
        self.unserved.add(key)
        self.marked_since_claim.add(key)

    @rule(seconds=st.sampled_from([0.01, 0.6, 1.1, 2.1, 5.1, 30.0]))
    def time_passes(self, seconds: float):
        self.hand.wait(seconds)

    @rule(is_answered=st.booleans())
    def jobs_are_published(self, *, is_answered: bool):
        for key in self.hand.take_all():
            was_there = key in self.stream
            self.stream.add(key)
            if is_answered:
                (self.hand.queue.refused if was_there else self.hand.queue.stored)(key, now=self.hand.clock())

    @rule()
    def publishes_are_lost(self):
        for key in self.hand.take_all():
            self.hand.queue.unknown(key, now=self.hand.clock())

    @rule(answering=st.sets(workers))
    def the_watcher_is_started_anew(self, answering: set[str]):
        """It asks who holds what, and marks every key.

        Workers that don't answer are silent: they die, or stall until their leases end.
        """
        self.lives += 1
        self.hand.restart(epoch=f"life{self.lives}")
        self.awaited.clear()
        self.holders = [holder for holder in self.live_holders() if holder.worker in answering]
        for holder in self.holders:
            assert self.hand.renew(holder.lease, holder.key, worker=holder.worker)
            holder.lease = self.hand.lease_of(holder.key)
            holder.valid_until = self.hand.clock() + LIMITS.lease_seconds
        for key in KEYS:
            self.mark(key, MarkClass.RESYNC)

    @rule(key=keys)
    def a_watch_breaks(self, key: JobKey):
        self.hand.behind.add(key.controller)

    @rule(key=keys)
    def a_watch_has_caught_up(self, key: JobKey):
        self.hand.behind.discard(key.controller)

    @rule()
    def the_stream_is_wiped(self):
        self.stream.clear()
        self.hand.queue.offer_all_again()

    # -- workers -------------------------------------------------------------------------------------------------------

    @rule(target=leases, key=keys, worker=workers, is_reply_lost=st.booleans())
    def a_job_is_delivered(self, key: JobKey, worker: str, *, is_reply_lost: bool):
        """Also twice at once, as a server does that lost what it had delivered; but never to a worker that has the key
        in hand.
        """
        if key not in self.stream or any(held.key == key and held.worker == worker for held in self.live_holders()):
            return None
        if key.controller in self.hand.behind:
            self.hand.queue.refused(key, now=self.hand.clock())
            return None
        asked_at = self.hand.clock()
        reply = self.hand.claim(key, worker=worker)
        if not isinstance(reply, Lease):
            return None
        writes, deadline = self.awaited.pop(key, ((), 0.0))
        assert self.hand.clock() >= deadline or all(each in self.hand.cache.seen for each in writes), (
            f"{key} was handed out with an old view"
        )
        self.marked_since_claim.discard(key)
        if is_reply_lost:
            return None
        holder = Holder(key, worker, reply, asked_at + LIMITS.lease_seconds)
        self.holders.append(holder)
        return holder

    @rule(holder=leases)
    def a_lease_is_renewed(self, holder: Holder | None):
        if holder in self.live_holders() and holder is not None and self.hand.renew(holder.lease, holder.key, worker=holder.worker):
            holder.valid_until = self.hand.clock() + LIMITS.lease_seconds

    @rule(holder=leases)
    def a_worker_writes(self, holder: Holder | None):
        if holder in self.live_holders() and holder is not None:
            self.versions += 1
            holder.wrote.append(write(holder.key.name, version=self.versions))

    @rule(number=st.integers(1, 50))
    def the_cache_sees_a_write(self, number: int):
        for key in KEYS:
            self.hand.see(write(key.name, version=number))

    @rule(
        holder=consumes(leases),
        result=st.sampled_from(["done", "done", "retry", "rejected", "throttled"]),
        is_report_lost=st.booleans(),
        is_receipt_lost=st.booleans(),
        is_receipt_first=st.booleans(),
    )
    def a_sync_ends(self, holder: Holder | None, result: str, *, is_report_lost: bool, is_receipt_lost: bool, is_receipt_first: bool):
        """Whoever believes in its lease reports and acknowledges; each word may be lost, and overtake the other."""
        if holder is None or holder not in self.live_holders():
            return
        self.holders.remove(holder)
        self.stream.discard(holder.key)
        entry = self.hand.queue.entry(holder.key)
        is_current = entry is not None and entry.lease is holder.lease
        if is_receipt_first and not is_receipt_lost:
            self.hand.receipt(holder.lease)
        if not is_report_lost and not is_receipt_lost and is_current:
            self.awaited[holder.key] = (tuple(holder.wrote), self.hand.clock() + LIMITS.gate_seconds)
        if not is_report_lost:
            self.hand.report(holder.lease, holder.key, result=result, writes=tuple(holder.wrote))  # type: ignore[arg-type]
            if is_current and result == "done" and holder.key not in self.marked_since_claim:
                self.unserved.discard(holder.key)
        if not is_receipt_first and not is_receipt_lost:
            self.hand.receipt(holder.lease)

    @rule(holder=consumes(leases))
    def a_worker_dies(self, holder: Holder | None):
        if holder in self.holders:
            self.holders.remove(holder)

    # -- what always holds ---------------------------------------------------------------------------------------------

    @invariant()
    def no_two_workers_believe_in_a_lease_of_one_key(self):
        held = [holder.key for holder in self.live_holders()]
        assert len(held) == len(set(held))

    @invariant()
    def no_mark_is_lost(self):
        for key in self.unserved:
            entry = self.hand.queue.entry(key)
            assert entry is not None, f"{key} is forgotten"
            assert entry.mark or entry.lease or entry.due(Purpose.RETRY) is not None, f"nothing will run {key}"

    @invariant()
    def the_books_agree(self):
        queue, entries = self.hand.queue, list(self.hand.queue.entries())
        assert queue.offers.unclaimed == sum(entry.offer in (Offer.SENT, Offer.STORED) for entry in entries)
        assert queue.waiting == sum(entry.stage in (Stage.WAITING, Stage.PARKED) for entry in entries)
        assert len(queue.leases) == sum(entry.lease is not None for entry in entries)
        for entry in entries:
            assert (entry.lease is not None) == (entry.stage is Stage.LEASED)
            assert (entry.offer is not None) == (entry.stage is Stage.QUEUED)
            assert entry.stage is not Stage.IDLE or entry.mark is None
            assert entry.mark is not None or entry.stage in (Stage.IDLE, Stage.LEASED)
        for flow in {entry.flow for entry in entries}:
            in_flight = sum(entry.flow is flow and entry.stage in (Stage.QUEUED, Stage.LEASED) for entry in entries)
            assert flow.in_flight == in_flight

    def teardown(self):
        """When failures end, every mark is served, and the queue comes to rest."""
        self.holders.clear()
        self.hand.behind.clear()
        for seconds in _LONG_ENOUGH:
            if not self.unserved:
                break
            self.hand.wait(seconds)
            self.jobs_are_published(is_answered=True)
            for key in sorted(self.stream):
                reply = self.hand.claim(key, worker="last")
                if isinstance(reply, Lease):
                    self.stream.discard(key)
                    self.hand.finish(reply, key)
                    self.unserved.discard(key)
        assert not self.unserved

    def live_holders(self) -> list[Holder]:
        return [holder for holder in self.holders if holder.valid_until > self.hand.clock()]


TestQueueAmongFailures = QueueAmongFailures.TestCase
TestQueueAmongFailures.settings = settings(max_examples=200, stateful_step_count=50)
