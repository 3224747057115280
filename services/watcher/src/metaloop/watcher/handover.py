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
from metaloop.common.crashes import crash_logged
from metaloop.common.errors import Unavailable
from metaloop.common.job import ControllerId
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.catch_up import CATCH_UP_SECONDS
from metaloop.watcher.ownership import Ownership
from metaloop.watcher.workqueue import WorkQueue

log = get_logger()

_ASK_AGAIN_SECONDS = 0.1
_LOOK_AGAIN_SECONDS = 0.05
_AFTER_CRASH_SECONDS = 1.0


class OwnershipHandover:
    """Takes over the controllers that run here, and gives them up."""

    def __init__(self, link: WatcherLink, ownership: Ownership, queue: WorkQueue, *, patience_seconds: float) -> None:
        self._link = link
        self._ownership = ownership
        self._queue = queue
        self._patience_seconds = patience_seconds
        self._tended: set[ControllerId] = set()
        """The controllers that have a task."""

    async def run(self, *, leads: Leads) -> None:
        """Own each controller that runs here from when it is free until it is over. Runs until cancelled.

        Questions are answered only while this watcher `leads`.
        """
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._ownership.changed.clear()
                for controller in self._ownership.running - self._tended:
                    self._tended.add(controller)
                    tasks.create_task(self._tend(controller, leads), name=f"ownership of {controller}")
                await self._ownership.changed.wait()

    async def _tend(self, controller: ControllerId, leads: Leads) -> None:
        try:
            with crash_logged("handover.crashed", controller=str(controller)):
                await self._own(controller, leads)
                return
            await asyncio.sleep(_AFTER_CRASH_SECONDS)
        finally:
            self._ownership.give_up(controller)
            self._tended.discard(controller)
            self._ownership.changed.set()

    async def _own(self, controller: ControllerId, leads: Leads) -> None:
        if await self._is_free(controller):
            async with self._link.owning(controller, leads=leads):
                self._ownership.own(controller)
                await self._until_over(controller)

    async def _is_free(self, controller: ControllerId) -> bool:
        """Whether the controller still runs here, once no other watcher serves it."""
        heard_at, was_served = self._ownership.arrived_at(controller), False
        while controller in self._ownership.running:
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
        return controller in self._ownership.running

    async def _until_over(self, controller: ControllerId) -> None:
        """Return once the controller no longer runs here and no worker holds a key of it. Then it is given up."""
        while controller in self._ownership.running:
            await self._ownership.until_stopped(controller)
            while controller not in self._ownership.running and self._queue.is_leased(controller):  # noqa: ASYNC110 - no lease tells of its end
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        self._ownership.give_up(controller)
