"""Routes changes to the work queue: marks the units of work that a change concerns by the controllers' rules."""

from functools import partial
from typing import assert_never

from metaloop.common.api.instructions import max_concurrent
from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import loads
from metaloop.common.objects.resource import ResourceId
from metaloop.common.observation import CachedRelated
from metaloop.common.report import SyncReport
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.health import ControllerStats
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.rules.related import Related
from metaloop.watcher.core.rules.rule import Concern, Ended, EndedParts, Later, Swept, Touched
from metaloop.watcher.core.running import RunningControllers
from metaloop.watcher.core.subscriptions import RelatedSubscriptions
from metaloop.watcher.ownership import Ownership
from metaloop.watcher.sweeps import Sweeps
from metaloop.watcher.workqueue import MarkClass, WorkQueue


class Router:
    """Marks units of work in the queue, and keeps count of the parents of each running controller."""

    def __init__(
        self,
        queue: WorkQueue,
        caches: Caches,
        *,
        running: RunningControllers,
        subscriptions: RelatedSubscriptions,
        ownership: Ownership,
    ) -> None:
        self._queue = queue
        self._caches = caches
        self._running = running
        self._subscriptions = subscriptions
        self._related = Related(subscriptions)
        self._ownership = ownership
        self._sweeps = Sweeps()
        self.stats: dict[ControllerId, ControllerStats] = {}
        """Of each running controller."""

    # -- controllers ---------------------------------------------------------------------------------------------------

    def start(self, instance: Instance, *, reason: str) -> None:
        """Serve a controller by `instance`, in place of an older one, and mark the units of work of all its parents."""
        controller = instance.controller
        self._ownership.started(controller.id)
        former = self.stats.get(controller.id, ControllerStats())
        stats = self.stats[controller.id] = ControllerStats()
        units = self._running.start(instance)
        self._subscriptions.forget_controller(controller.id, unless=lambda key: instance.may_subscribe and self._running.serves(key))
        limit = max_concurrent(loads(self._running.raw(controller.id)))
        self._queue.set_controller(controller.id, resync_seconds=controller.resync_period_seconds, max_concurrent=limit)
        for key in units:
            stats.add(key, former)
            self._queue.mark(key, MarkClass.RETRY, reason)

    def stop(self, controller: ControllerId) -> None:
        """Serve a controller no longer."""
        if self._running.stop(controller):
            del self.stats[controller]
            self._subscriptions.forget_controller(controller)
            self._queue.forget_controller(controller)
            self._ownership.stopped(controller)

    def show(self, controller: ControllerId, raw: bytes) -> None:
        """Show hooks the controller object like this. It may be newer than the spec that its instance serves."""
        self._running.show(controller, raw)

    def finalizer_holders(self, controller: ControllerId) -> list[str]:
        """The parents of a running controller that hold its finalizer, as `resource namespace/name`, sorted."""
        instance = self._running.get(controller)
        return sorted(
            f"{parents.watch.resource.resource} {'/'.join(filter(None, key))}"
            for parents in (instance.parents if instance is not None else ())
            for key, record in self._caches[parents.watch.id].objects.items()
            if parents.finalizer in record.finalizers
        )

    def parts(self) -> dict[ControllerId, int]:
        """How many parts the parents of each running controller have, where their kind divides the work of a parent."""
        return {instance.controller.id: instance.tally.total() for instance in self._running if instance.tally is not None}

    # -- changes -------------------------------------------------------------------------------------------------------

    def take(self, change: Change) -> None:
        """Mark the units of work that a change concerns, and let those run that waited for it. It must be cached."""
        for rule in self._running.rules_of(change.watch.id):
            for concern in rule.concerned(change, self._caches):
                self._handle(concern, change)
        for key in self._related.concerned(change):
            self._queue.mark(key, MarkClass.CHANGED, f"related {change}")
        self._queue.progress(change.watch.resource.id, *change.key)

    def mark_answerable(self) -> None:
        """Mark the parents whose related objects were incomplete and are complete now."""
        for key in self._subscriptions.take_answerable():
            self._queue.mark(key, MarkClass.CHANGED, "its related resources can be watched now")

    def mark_subscribers(self, resource: ResourceId) -> None:
        """Mark the subscribers to a resource that is no longer watched: what they were shown may be out of date."""
        for key in self._subscriptions.subscribers_of(resource):
            self._queue.mark(key, MarkClass.CHANGED, f"related {resource} is not watched any more")

    # -- what workers say ----------------------------------------------------------------------------------------------

    def subscribe(self, request: RelatedRequest) -> CachedRelated:
        """The related objects that the queries of `request` select. From now on its parent is subscribed to them."""
        return self._subscriptions.subscribe(request.key, request.fingerprint, request.queries)

    def record_report(self, report: SyncReport) -> None:
        """Count how a sync ended. What is gone meanwhile fails no more."""
        key = report.key
        stats, instance = self.stats.get(key.controller), self._running.get(key.controller)
        if stats is None or instance is None or (report.result != "done" and not self._running.serves(key)):
            return
        stats.record(report)
        if instance.tally is not None:
            for concern in instance.tally.reported(report, is_failing=key in stats.failing):
                self._handle(concern, "a part was synced")

    def _handle(self, concern: Concern, cause: Change | str) -> None:
        match concern:
            case Later(key=key):
                self._queue.mark_later(key, quiet_seconds=concern.quiet_seconds, within_seconds=concern.within_seconds)
            case Touched(key=key):
                self.stats[key.controller].parents += concern.is_new_parent
                self._queue.mark(key, concern.klass, str(cause), version=concern.version)
            case Swept(parts=parts):
                self._sweeps.add(parts.keys(), partial(self._mark_swept, reason=str(cause)))
            case EndedParts(parts=parts):
                self._sweeps.add(parts.keys(), self._forget_unless_back)
            case Ended(key=key):
                self.stats[key.controller].parents -= concern.was_parent
                self._forget(key)
            case _:
                assert_never(concern)

    def _mark_swept(self, key: JobKey, reason: str) -> None:
        if key.controller in self.stats:  # it may have been stopped since the sweep began
            self._queue.mark(key, MarkClass.CHANGED, reason)

    def _forget_unless_back(self, part: JobKey) -> None:
        instance = self._running.get(part.controller)
        if instance is not None and not (instance.tally is not None and instance.tally.has(part)):
            self._forget(part)

    def _forget(self, key: JobKey) -> None:
        self.stats[key.controller].forget(key)
        self._subscriptions.forget(key)
        self._queue.forget(key)
