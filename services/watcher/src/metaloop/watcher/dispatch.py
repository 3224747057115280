"""Feeds the job stream through its window, and hears of finished jobs.

A dispatcher lives for one leader term: `open` (hear workers, take over the leases that they hold), then the caller
marks every parent, then `run`.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, assert_never

from metaloop.common.bus.links import Leads, WatcherLink
from metaloop.common.bus.messages import ClaimRequest, Lost, OfferOutcome, RelatedRequest, Renewal
from metaloop.common.errors import LeaseLost, Unavailable
from metaloop.common.job import JobKey
from metaloop.common.observation import CachedClaimReply, CachedRelated
from metaloop.common.report import SyncReport
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.claims import Claims
from metaloop.watcher.errors import NotLeading
from metaloop.watcher.workqueue import WorkQueue

log = get_logger()

_HELD_WAIT_SECONDS = 0.3
_MEND_PAUSE_SECONDS = 0.5


class Routing(Protocol):
    """What the dispatcher passes on of syncs to the router."""

    def subscribe(self, request: RelatedRequest) -> CachedRelated:
        """Subscribe a parent to related objects; the objects as they are now."""
        ...

    def record_report(self, report: SyncReport) -> None:
        """Count how a sync ended."""
        ...


class Dispatcher:
    """Connects the work queue of one shard with its workers.

    Nothing is granted and nothing confirmed while this watcher doesn't lead.
    """

    def __init__(self, link: WatcherLink, *, queue: WorkQueue, claims: Claims, routing: Routing, leads: Leads) -> None:
        self._link = link
        self._queue = queue
        self._claims = claims
        self._routing = routing
        self._leads = leads
        self._stream_is_doubtful = asyncio.Event()
        self._was_away = False
        """Whether the connection was lost since the stream was last looked after."""
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_due = math.inf

    @asynccontextmanager
    async def open(self) -> AsyncIterator[float]:
        """Hear workers for the length of the block, and know the leases that they hold when it begins.

        Yields the time since when they are heard.
        """
        with self._link.on_reconnect(self._doubt_deliveries):
            await self._link.ensure_stream()
            async with self._link.serving(self, leads=self._leads):
                heard_since = self._queue.clock()
                for renewal in await self._link.held_leases(wait_seconds=_HELD_WAIT_SECONDS):
                    self.take_renewal(renewal)
                yield heard_since

    async def run(self) -> None:
        """Publish jobs until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._mend_stream(), name="mend the job stream")
            tasks.create_task(self._feed(), name="feed the job stream")

    async def _feed(self) -> None:
        while True:
            self._queue.wakeup.clear()
            await self._feed_window()
            self._set_alarm(self._queue.next_wakeup())
            await self._queue.wakeup.wait()

    async def _feed_window(self) -> None:
        self._check_leadership()
        self._queue.advance()
        while (job := self._queue.take()) is not None:
            await self._link.offer(job)

    def _set_alarm(self, due: float | None) -> None:
        """Wake up at `due`, or earlier: an alarm that is set for an earlier time stays."""
        if due is None or due >= self._alarm_due:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_due = due
        self._alarm = asyncio.get_running_loop().call_later(max(0.0, due - self._queue.clock()), self._ring_alarm)

    def _ring_alarm(self) -> None:
        self._alarm, self._alarm_due = None, math.inf
        self._queue.wakeup.set()

    def _doubt_deliveries(self) -> None:
        """The connection is back.

        Jobs may have been delivered to workers that were disconnected too: the stream would wait for these for
        `ack_wait`.
        """
        self._was_away = True
        self._stream_is_doubtful.set()

    async def _mend_stream(self) -> None:
        """Whenever the stream is in doubt: have it there, with all jobs in it that should be."""
        while True:
            await self._stream_is_doubtful.wait()
            self._stream_is_doubtful.clear()
            await self._link.ensure_stream()
            if self._was_away:
                await self._clear_stream()
            self._queue.offer_all_again()
            await asyncio.sleep(_MEND_PAUSE_SECONDS)  # a stream that refuses for a reason of its own stays doubtful

    async def _clear_stream(self) -> None:
        """Remove all jobs of the shard: the queue knows them.

        A worker keeps its leases, and finishes without its jobs.
        """
        self._was_away = False
        try:
            await self._link.clear_stream()
        except Unavailable as error:
            log.warning("dispatch.stream_not_cleared", **{fields.ERROR: str(error)})

    # -- what the link tells: a WatcherHandler -------------------------------------------------------------------------

    def take_outcome(self, key: JobKey, outcome: OfferOutcome) -> None:
        """An offered job is queued, was refused, or has to be offered again."""
        match outcome:
            case OfferOutcome.QUEUED:
                self._queue.stored(key)
            case OfferOutcome.ALREADY_QUEUED:
                self._queue.refused(key)
            case OfferOutcome.UNKNOWN:
                self._queue.unknown(key)
                self._stream_is_doubtful.set()
            case _:
                assert_never(outcome)

    def answer_claim(self, request: ClaimRequest) -> CachedClaimReply:
        """A lease with the parent's observation, or why there is none. Raises NotLeading."""
        self._check_leadership()
        return self._claims.answer(request)

    def answer_related(self, request: RelatedRequest) -> CachedRelated:
        """The related objects of a parent.

        Raises LeaseLost where the worker doesn't hold it (its next renewal says so), and NotLeading.
        """
        self._check_leadership()
        if not self._queue.holds(request.lease, request.key):
            raise LeaseLost(f"{request.lease} does not hold {request.key}")
        return self._routing.subscribe(request)

    def take_renewal(self, renewal: Renewal) -> Lost:
        """The leases of a worker that are lost; the others are renewed. Raises NotLeading."""
        self._check_leadership()
        lost = self._queue.renew(renewal)
        if lost:
            log.info("dispatch.leases_lost", **{fields.WORKER: renewal.worker, fields.COUNT: len(lost)})
        return lost

    def take_report(self, report: SyncReport) -> None:
        """A sync ended."""
        self._queue.report(report)
        self._routing.record_report(report)

    def take_receipt(self, lease: str) -> None:
        """A job is out of the stream."""
        self._queue.receipt(lease)

    def _check_leadership(self) -> None:
        """Raise NotLeading where another watcher may lead by now: a process that was asleep wakes up in its term.

        Then nobody is answered, and workers ask again.
        """
        if not self._leads():
            raise NotLeading("another watcher may lead this shard by now")
