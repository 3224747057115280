"""Answers a worker's claim with a lease and the parent's observation."""

from collections.abc import Callable
from typing import TypeAlias, assert_never

from metaloop.common.bus.messages import ClaimRequest
from metaloop.common.job import JobKey
from metaloop.common.observation import Busy, CachedClaimReply, CachedGrant, CachedObservation, Gone
from metaloop.common.telemetry import metrics
from metaloop.watcher.core.entry import Lease
from metaloop.watcher.core.fair_queue import MarkClass
from metaloop.watcher.workqueue import WorkQueue

Observe: TypeAlias = Callable[[JobKey], CachedObservation | Gone]
"""What the cache holds of one parent and its objects now."""

_BEHIND_RETRY_SECONDS = 0.25

_put_off_total = metrics.counter("metaloop_claims_put_off", "Claims put off because the cache may be older than our own writes.")


class Claims:
    """Grants leases on the keys of the queue.

    `is_behind` says whether the cache may be older than our own last writes to a parent's objects: then nobody is
    granted the parent.
    """

    def __init__(self, queue: WorkQueue, *, observe: Observe, is_behind: Callable[[JobKey], bool], lease_seconds: float) -> None:
        self._queue = queue
        self._observe = observe
        self._is_behind = is_behind
        self._lease_seconds = lease_seconds

    def answer(self, request: ClaimRequest) -> CachedClaimReply:
        """The reply to a claim.

        Observation and lease are made without an await in between: an event that the cache takes after the observation
        can't be counted as seen by the lease.
        """
        if self._is_behind(request.key):
            _put_off_total.inc()
            self._queue.refused(request.key)  # until it catches up, others may have its place in the window
            return Busy(retry_seconds=_BEHIND_RETRY_SECONDS)
        observed = self._observe(request.key)
        reply = self._queue.claim(request.key, worker=request.worker, slots=request.free_slots)
        match reply:
            case Lease():
                return self._grant(reply, observed)
            case Busy() | Gone():
                return reply
            case _:
                assert_never(reply)

    def _grant(self, lease: Lease, observed: CachedObservation | Gone) -> CachedClaimReply:
        if isinstance(observed, Gone):
            self._queue.dismiss(lease)
            return Gone(reason=observed.reason, lease=lease.id)
        return CachedGrant(
            lease=lease.id, lease_seconds=self._lease_seconds, observation=observed, changed_seconds_ago=self._change_age(lease)
        )

    def _change_age(self, lease: Lease) -> float | None:
        """How long ago the change was seen that a new lease serves; None for what no change marked."""
        mark = lease.serves
        return self._queue.clock() - mark.since if mark.klass <= MarkClass.CHANGED else None
