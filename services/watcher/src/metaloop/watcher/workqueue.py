"""Fair and stingy: what is dirty, in flight, waiting for a timer; what goes next.

The pure queue with a clock and a bell: each call is made at the time of the clock, and whatever may let a job go rings for the dispatcher.
"""

from collections.abc import Callable
from typing import TypeAlias

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId
from metaloop.common.telemetry import fields
from metaloop.common.telemetry.traces import span
from metaloop.watcher.core.entry import Mark
from metaloop.watcher.core.fair_queue import MarkClass
from metaloop.watcher.core.workqueue import Queue

Clock: TypeAlias = Callable[[], float]
Bell: TypeAlias = Callable[[], None]

__all__ = ["Bell", "Clock", "MarkClass", "WorkQueue"]


def _nobody_listens() -> None:
    """The bell of a queue that nobody dispatches yet."""


class WorkQueue:
    """The queue as the rest of the watcher uses it."""

    def __init__(self, queue: Queue, *, clock: Clock) -> None:
        self.core = queue
        self.clock = clock
        self.ring: Bell = _nobody_listens
        """Wakes the dispatcher; set by it."""

    def mark(self, key: JobKey, klass: MarkClass, reason: str, *, version: int = 0) -> None:
        """Have `key` run, or run once more where a worker has it; `version` is what the parent came to, where it is the parent that changed.

        Where traces are on, one begins here, and the job goes on with it.
        """
        with span("mark") as marked:
            if marked.traceparent:
                marked.set(fields.KEY, str(key))
                marked.set(fields.REASON, reason)
            versions = frozenset((version,)) if version else frozenset[int]()
            now = self.clock()
            self.core.mark(key, Mark(klass=klass, reason=reason, traceparent=marked.traceparent, versions=versions, since=now), now=now)
        self.ring()

    def forget(self, key: JobKey) -> None:
        """Have no timer run `key` any more, and no mark made so far: its parent is gone."""
        self.core.forget(key)

    def set_controller(self, controller: ControllerId, *, resync_seconds: float | None = None, max_concurrent: int | None = None) -> None:
        """Resync the keys of a controller with this period, and let no more than so many be on their way at once."""
        self.core.set_controller(controller, resync_seconds=resync_seconds, max_concurrent=max_concurrent, now=self.clock())
        self.ring()

    def forget_controller(self, controller: ControllerId) -> None:
        """Have nothing run the keys of a controller any more."""
        self.core.forget_controller(controller)

    def progress(self, resource: ResourceId, namespace: str, name: str) -> None:
        """The cache has news of this object: to be told after the cache took it, for each event."""
        if self.core.gated and self.core.progress((resource, namespace, name), now=self.clock()):
            self.ring()
