"""Which controllers run here, and which of them this watcher owns. The queue hands out keys of no others."""

import asyncio
from collections.abc import Set as AbstractSet

from metaloop.common.job import ControllerId
from metaloop.watcher.workqueue import WorkQueue


class Ownership:
    """The controllers that run here, and those that are owned.

    A controller that starts is blocked in the queue until it is owned. `handover.py` takes over and gives up ownership.
    """

    def __init__(self, queue: WorkQueue) -> None:
        self._queue = queue
        self._arrived_at: dict[ControllerId, float] = {}
        self._owned: set[ControllerId] = set()
        self._stops: dict[ControllerId, asyncio.Event] = {}
        self.changed = asyncio.Event()
        """Set when a controller started."""

    @property
    def running(self) -> AbstractSet[ControllerId]:
        """The controllers that run here, on a standby too."""
        return self._arrived_at.keys()

    def arrived_at(self, controller: ControllerId) -> float:
        """When a running controller came here, by the clock of the queue."""
        return self._arrived_at[controller]

    def started(self, controller: ControllerId) -> None:
        """A controller runs here from now on, or runs with another spec."""
        self._arrived_at.setdefault(controller, self._queue.clock())
        if controller not in self._owned:
            self._queue.block(controller)
        self.changed.set()

    def stopped(self, controller: ControllerId) -> None:
        """A controller no longer runs here. Syncs of it may still be in progress."""
        self._arrived_at.pop(controller, None)
        if controller in self._stops:
            self._stops[controller].set()

    async def until_stopped(self, controller: ControllerId) -> None:
        """Return once the controller no longer runs here; at most one task may wait for each."""
        stop = self._stops[controller] = asyncio.Event()
        try:
            while controller in self._arrived_at:
                stop.clear()
                await stop.wait()
        finally:
            del self._stops[controller]

    def own(self, controller: ControllerId) -> None:
        """Let the queue hand out the controller's keys."""
        self._owned.add(controller)
        self._queue.unblock(controller)

    def give_up(self, controller: ControllerId) -> None:
        """Own the controller no longer. If it starts again, it is blocked."""
        self._owned.discard(controller)
