"""Ownership handover: a controller that moves to another watcher is served there once its former owner is done with it.

An edited label or shard can move a controller. The owner of a controller answers for it on the bus: while it serves the
controller, and after that while syncs of it are still in hand. A watcher that wants to serve a controller asks first:

an answer       somebody serves it, or finishes: ask again, however long that takes
nobody there    it is ours; the bus says so at once, so an ordinary start costs one round trip
silence         it is ours once the controller has been here for as long as a worker's lease lives without its watcher

Until then the controller is known, watched and marked as always. Only its keys are not handed out.
"""

import asyncio

from metaloop.common.bus.links import Leads, WatcherLink
from metaloop.common.errors import Unavailable
from metaloop.common.job import ControllerId
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.catchup import CATCH_UP_SECONDS
from metaloop.watcher.workqueue import WorkQueue

log = get_logger()

_ASK_AGAIN_SECONDS = 0.1
_LOOK_AGAIN_SECONDS = 0.05


class OwnershipHandover:
    """Which of the controllers that run here this watcher owns, and so may serve."""

    def __init__(self, link: WatcherLink, queue: WorkQueue, *, patience_seconds: float) -> None:
        self._link = link
        self._queue = queue
        self._patience_seconds = patience_seconds
        self._arrived_at: dict[ControllerId, float] = {}
        """The controllers that run here, on a standby too, and when each came."""
        self._owned: set[ControllerId] = set()
        """The controllers that we answer for. The queue hands out keys of no others."""
        self._tended: dict[ControllerId, asyncio.Event] = {}
        """The controllers that have a task; the event tells it that its controller was stopped."""
        self._bell = asyncio.Event()

    def started(self, controller: ControllerId) -> None:
        """A controller runs here from now on, or runs with another spec."""
        self._arrived_at.setdefault(controller, self._queue.clock())
        if controller not in self._owned:
            self._queue.core.shut(controller)
        self._bell.set()

    def stopped(self, controller: ControllerId) -> None:
        """A controller runs here no more; syncs of it may still be in hand."""
        self._arrived_at.pop(controller, None)
        if controller in self._tended:
            self._tended[controller].set()

    async def run(self, *, leads: Leads) -> None:
        """Own each controller that runs here from when it is free until it is over. Runs until cancelled.

        Questions are answered only while this watcher `leads`.
        """
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._bell.clear()
                for controller in self._arrived_at.keys() - self._tended.keys():
                    self._tended[controller] = asyncio.Event()
                    tasks.create_task(self._tend(controller, leads), name=f"handover of {controller}")
                await self._bell.wait()

    async def _tend(self, controller: ControllerId, leads: Leads) -> None:
        try:
            if await self._is_free(controller):
                async with self._link.owning(controller, leads=leads):
                    self._owned.add(controller)
                    self._queue.core.admit(controller)
                    self._queue.ring()
                    await self._is_over(controller)
        finally:
            self._owned.discard(controller)
            del self._tended[controller]
            self._bell.set()

    async def _is_free(self, controller: ControllerId) -> bool:
        """Whether the controller still runs here, once no other watcher serves it."""
        heard_at, was_served = self._arrived_at[controller], False
        while controller in self._arrived_at:
            try:
                if not await self._link.is_owned(controller):
                    break
            except Unavailable as error:
                if self._queue.clock() >= heard_at + self._patience_seconds:
                    log.warning("handover.owner_silent", **{fields.CONTROLLER: str(controller), fields.ERROR: str(error)})
                    break
            else:
                if not was_served:
                    log.info("handover.awaited", **{fields.CONTROLLER: str(controller), fields.REASON: "another watcher serves it"})
                heard_at, was_served = self._queue.clock(), True
            await asyncio.sleep(_ASK_AGAIN_SECONDS)
        if was_served:
            # The former owner was told the versions of its last writes; we were not.
            await asyncio.sleep(CATCH_UP_SECONDS)
        return controller in self._arrived_at

    async def _is_over(self, controller: ControllerId) -> None:
        """Return once the controller runs here no more and no sync of it is in hand; then it isn't ours any more."""
        stopped = self._tended[controller]
        while controller in self._arrived_at:
            stopped.clear()
            await stopped.wait()
            while controller not in self._arrived_at and self._queue.core.is_in_hand(controller):  # noqa: ASYNC110 - no lease tells us of its end
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        self._owned.discard(controller)
