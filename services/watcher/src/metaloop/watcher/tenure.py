"""No controller is served by two watchers at once, whatever label or shard was edited: who comes to one waits until the other is done with it.

A watcher that leads answers for each controller that it serves, and for each that it stopped whose syncs are still in hand. Who begins to
serve one asks first; where nobody is there, the bus says so at once, and so the usual beginning costs one round trip. Until then the
controller is known, watched and marked as always: only nothing of it is handed out.

Somebody answers    it goes on, or finishes: ask again, however long that takes, since it serves the controller meanwhile
nobody is there     it is ours
silence             for as long as a worker's lease lives without its watcher, counted from when the controller came to us: then it is ours
"""

import asyncio
from collections.abc import Callable

from metaloop.common.bus.connect import Bus
from metaloop.common.bus.tenures import answering_tenure, is_served
from metaloop.common.errors import Unavailable
from metaloop.common.job import ControllerId
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.catchup import CATCH_UP_SECONDS
from metaloop.watcher.workqueue import WorkQueue

log = get_logger()

_ASK_AGAIN_SECONDS = 0.1
_LOOK_AGAIN_SECONDS = 0.05


class Tenures:
    """Which of the controllers that run here are ours to serve."""

    def __init__(self, bus: Bus, queue: WorkQueue, *, patience_seconds: float) -> None:
        self._bus = bus
        self._queue = queue
        self._patience_seconds = patience_seconds
        self._since: dict[ControllerId, float] = {}
        """The controllers that run here, each with the time when it came to us: also while we stand by."""
        self._held: set[ControllerId] = set()
        """Those that we answer for. Of no other is anything handed out."""
        self._seen_to: dict[ControllerId, asyncio.Event] = {}
        """Those that have a task, with what tells it that the controller was stopped."""
        self._bell = asyncio.Event()

    def started(self, controller: ControllerId) -> None:
        """A controller runs here from now on, or in another form."""
        self._since.setdefault(controller, self._queue.clock())
        if controller not in self._held:
            self._queue.core.shut(controller)
        self._bell.set()

    def stopped(self, controller: ControllerId) -> None:
        """A controller runs here no more; syncs of it may be in hand."""
        self._since.pop(controller, None)
        if controller in self._seen_to:
            self._seen_to[controller].set()

    async def run(self, *, leads: Callable[[], bool]) -> None:
        """See to it that each controller that runs here is ours as soon as it may be, and nobody's when it is over; until cancelled.

        Nobody is answered at a moment when we don't lead.
        """
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._bell.clear()
                for controller in self._since.keys() - self._seen_to.keys():
                    self._seen_to[controller] = asyncio.Event()
                    tasks.create_task(self._see_to(controller, leads), name=f"tenure of {controller}")
                await self._bell.wait()

    async def _see_to(self, controller: ControllerId, leads: Callable[[], bool]) -> None:
        try:
            if await self._comes_to_us(controller):
                async with answering_tenure(self._bus, controller, holds=leads):
                    self._held.add(controller)
                    self._queue.core.admit(controller)
                    self._queue.ring()
                    await self._is_over(controller)
        finally:
            self._held.discard(controller)
            del self._seen_to[controller]
            self._bell.set()

    async def _comes_to_us(self, controller: ControllerId) -> bool:
        """Whether it still runs here, once nobody else serves it."""
        heard_at, was_served = self._since[controller], False
        while controller in self._since:
            try:
                if not await is_served(self._bus, controller):
                    break
            except Unavailable as error:
                if self._queue.clock() >= heard_at + self._patience_seconds:
                    log.warning("tenure.taken_from_the_silent", **{fields.CONTROLLER: str(controller), fields.ERROR: str(error)})
                    break
            else:
                if not was_served:
                    log.info("tenure.awaited", **{fields.CONTROLLER: str(controller), fields.REASON: "another watcher serves it"})
                heard_at, was_served = self._queue.clock(), True
            await asyncio.sleep(_ASK_AGAIN_SECONDS)
        if was_served:
            # Its last writes were told to the other watcher, and nobody tells us their versions.
            await asyncio.sleep(CATCH_UP_SECONDS)
        return controller in self._since

    async def _is_over(self, controller: ControllerId) -> None:
        """Return once it runs here no more and nobody has any of its parents in hand; from that moment on it isn't ours."""
        stopped = self._seen_to[controller]
        while controller in self._since:
            stopped.clear()
            await stopped.wait()
            while controller not in self._since and self._queue.core.is_in_hand(controller):  # noqa: ASYNC110 - no lease tells us of its end
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        self._held.discard(controller)
