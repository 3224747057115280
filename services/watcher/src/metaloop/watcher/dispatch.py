"""Feeds the job stream through its window, and learns of jobs done.

Life of a dispatcher: `open` (hear workers, take over the leases that they hold), then the caller marks every parent, then `run`.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import assert_never

from metaloop.common.bus.channels import WatcherEars, hearing_workers, held_leases
from metaloop.common.bus.claims import serving_claims
from metaloop.common.bus.connect import Bus
from metaloop.common.bus.jobs import JobPublisher, Outcome
from metaloop.common.bus.messages import ClaimRequest, RelatedRequest, Renewal
from metaloop.common.bus.related import serving_related
from metaloop.common.bus.stream import JobStream
from metaloop.common.errors import LeaseLost, Unavailable
from metaloop.common.job import JobKey
from metaloop.common.observation import CachedRelated
from metaloop.common.report import SyncReport
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.claims import Claims
from metaloop.watcher.errors import NotLeading
from metaloop.watcher.workqueue import WorkQueue

log = get_logger()

_HELD_WAIT_SECONDS = 0.3
_MEND_PAUSE_SECONDS = 0.5
_WORKER_SILENCE_SECONDS = 10.0
"""A worker that said nothing for so long has no free slots."""


def _always() -> bool:
    """Nobody else is there."""
    return True


def _nobody_asks(_: SyncReport) -> None:
    """The listener where nobody wants to know."""


def _nothing_is_related(request: RelatedRequest) -> CachedRelated:
    """The answer where nobody keeps subscriptions."""
    return CachedRelated(fingerprint=request.fingerprint)


class Dispatcher:
    """Between the work queue of one shard and the bus."""

    def __init__(self, bus: Bus, stream: JobStream, *, shard: str, queue: WorkQueue, claims: Claims) -> None:
        self._bus = bus
        self._stream = stream
        self._shard = shard
        self._queue = queue
        self._claims = claims
        self.leads: Callable[[], bool] = _always
        """Whether we lead the shard at this moment; if not, nothing is granted and nothing confirmed."""
        self.on_report: Callable[[SyncReport], None] = _nobody_asks
        """Told of each sync that ended."""
        self.follow: Callable[[RelatedRequest], CachedRelated] = _nothing_is_related
        """Told what a parent follows from now on; what that selects."""
        self._publisher = JobPublisher(bus, self._take_outcome)
        self._bell = asyncio.Event()
        self._stream_is_doubtful = asyncio.Event()
        self._was_away = False
        """Whether the connection was lost since the stream was mended last."""
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_due = math.inf

    @asynccontextmanager
    async def open(self) -> AsyncIterator[float]:
        """Since when it hears workers, as it does for the length of the block; when that begins, the leases that workers hold are known."""
        self._queue.ring = self._bell.set
        ears = WatcherEars(on_renewal=self._take_renewal, on_report=self._take_report, on_receipt=self._take_receipt)
        with self._bus.on_reconnect(self._doubt_deliveries):
            await self._stream.ensure_at_last()
            async with (
                self._publisher.listening(),
                hearing_workers(self._bus, self._shard, ears),
                serving_claims(self._bus, self._shard, handler=self._answer_claim, leads=self.leads),
                serving_related(self._bus, self._shard, handler=self._answer_related),
            ):
                heard_since = self._queue.clock()
                for renewal in await held_leases(self._bus, self._shard, wait_seconds=_HELD_WAIT_SECONDS):
                    self._take_renewal(renewal)
                yield heard_since

    async def run(self) -> None:
        """Publish jobs for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._mend_stream(), name="mend the job stream")
            tasks.create_task(self._feed(), name="feed the job stream")

    async def _feed(self) -> None:
        while True:
            self._bell.clear()
            await self._feed_window()
            self._set_alarm(self._queue.core.next_wakeup())
            await self._bell.wait()

    async def _feed_window(self) -> None:
        self._check_leadership()
        queue, clock = self._queue.core, self._queue.clock
        queue.advance(clock())
        while (job := queue.take(clock())) is not None:
            await self._publisher.offer(job)

    def _set_alarm(self, due: float | None) -> None:
        """Have the bell rung at `due`, or earlier: an alarm that is set for an earlier time stays."""
        if due is None or due >= self._alarm_due:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_due = due
        self._alarm = asyncio.get_running_loop().call_later(max(0.0, due - self._queue.clock()), self._ring_alarm)

    def _ring_alarm(self) -> None:
        self._alarm, self._alarm_due = None, math.inf
        self._bell.set()

    def _doubt_deliveries(self) -> None:
        """While we were away, jobs may have been handed to workers who were away as well: the server waits for these for all of `ack_wait`."""
        self._was_away = True
        self._stream_is_doubtful.set()

    async def _mend_stream(self) -> None:
        """After each doubt: have the stream there, and in it all jobs that should be."""
        while True:
            await self._stream_is_doubtful.wait()
            self._stream_is_doubtful.clear()
            await self._stream.ensure_at_last()
            if self._was_away:
                await self._clear_stream()
            self._queue.core.offer_all_again()
            self._bell.set()
            await asyncio.sleep(_MEND_PAUSE_SECONDS)  # a stream that refuses for a reason of its own stays doubtful

    async def _clear_stream(self) -> None:
        """What matters is known here; who holds a lease keeps it, and finishes without its job."""
        self._was_away = False
        try:
            await self._stream.clear(self._shard)
        except Unavailable as error:
            log.warning("dispatch.stream_not_cleared", **{fields.ERROR: str(error)})

    def _take_outcome(self, key: JobKey, outcome: Outcome) -> None:
        now = self._queue.clock()
        match outcome:
            case Outcome.QUEUED:
                self._queue.core.stored(key, now=now)
            case Outcome.ALREADY_QUEUED:
                self._queue.core.refused(key, now=now)
                self._bell.set()  # it no longer counts in the window
            case Outcome.UNKNOWN:
                self._queue.core.unknown(key, now=now)
                self._stream_is_doubtful.set()
            case _:
                assert_never(outcome)

    def _check_leadership(self) -> None:
        """Whoever was asleep may wake up to find another in its place: silence then, and the one who asked asks again."""
        if not self.leads():
            raise NotLeading("another watcher may lead this shard by now")

    def _answer_claim(self, request: ClaimRequest) -> bytes:
        self._check_leadership()
        return self._claims.answer(request)

    def _answer_related(self, request: RelatedRequest) -> CachedRelated:
        """Raises LeaseLost where the word isn't that of the key's holder; it gets no answer, and learns from its renewal why."""
        self._check_leadership()
        if not self._queue.core.holds(request.lease, request.key):
            raise LeaseLost(f"{request.lease} does not hold {request.key}")
        return self.follow(request)

    def _take_renewal(self, renewal: Renewal) -> list[str]:
        """The leases of a worker that are lost; the others live on."""
        self._check_leadership()
        queue, now = self._queue.core, self._queue.clock()
        queue.window.tell(renewal.worker, renewal.slots, now=now)
        queue.window.forget_silent(since=now - _WORKER_SILENCE_SECONDS)
        lost = [held.lease for held in renewal.leases if not queue.renew(held.lease, held.key, worker=renewal.worker, now=now)]
        if lost:
            log.info("dispatch.leases_lost", **{fields.WORKER: renewal.worker, fields.COUNT: len(lost)})
        self._bell.set()
        return lost

    def _take_report(self, report: SyncReport) -> None:
        self._queue.core.report(report, now=self._queue.clock())
        self.on_report(report)
        self._bell.set()

    def _take_receipt(self, lease: str) -> None:
        self._queue.core.receipt(lease, now=self._queue.clock())
        self._bell.set()
