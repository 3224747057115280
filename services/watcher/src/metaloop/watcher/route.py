"""For each event, asks the core which parents it concerns and marks them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from metaloop.common.api.instructions import max_concurrent
from metaloop.common.api.revision import revision_namespace, revision_selector
from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import loads
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.observation import CachedGroup, CachedObservation, CachedRelated, Gone
from metaloop.common.report import SyncReport, Write
from metaloop.watcher.cache import ResourceCache
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.health import ControllerStats
from metaloop.watcher.core.instance import Instance, Target, concerned_by_child, concerned_by_parent
from metaloop.watcher.core.record import ObjectKey, Record
from metaloop.watcher.subscriptions import RelatedSubscriptions
from metaloop.watcher.workqueue import MarkClass, WorkQueue

Parents: TypeAlias = tuple[Instance, Target]
"""The parents of one resource, of one controller."""


def _nobody_listens(_: ControllerId) -> None:
    """The listener of a router whose controllers nobody else could serve."""


@dataclass(slots=True, kw_only=True, eq=False)
class Router:
    """The running instances over the caches: who is marked for a change, and what a parent's world looks like."""

    queue: WorkQueue
    caches: Mapping[ResourceId, ResourceCache]
    """By resource; shared with whoever starts and stops watches."""
    subscriptions: RelatedSubscriptions
    """The subscriptions of parents to related objects."""
    instances: dict[ControllerId, Instance] = field(default_factory=dict[ControllerId, Instance])
    controllers: dict[ControllerId, bytes] = field(default_factory=dict[ControllerId, bytes])
    """Each controller object as it is now, which may be newer than the spec that its instance serves."""
    stats: dict[ControllerId, ControllerStats] = field(default_factory=dict[ControllerId, ControllerStats])
    """For each running instance, how many parents it has and which of them fail."""
    on_start: Callable[[ControllerId], None] = _nobody_listens
    """Called before anything of an instance is marked."""
    on_stop: Callable[[ControllerId], None] = _nobody_listens
    """Called after everything of an instance was forgotten."""
    _by_parent: dict[ResourceId, list[Parents]] = field(default_factory=dict[ResourceId, list[Parents]])
    _by_child: dict[ResourceId, list[Instance]] = field(default_factory=dict[ResourceId, list[Instance]])

    def start(self, instance: Instance, *, reason: str) -> None:
        """Route events to an instance, in place of an older one of the same controller, and mark all its parents."""
        controller = instance.controller
        self.on_start(controller.id)
        former = self.stats.get(controller.id, ControllerStats())
        stats = self.stats[controller.id] = ControllerStats()
        self.instances[controller.id] = instance
        self._index()
        self.subscriptions.forget_controller(
            controller.id, unless=lambda key: instance.has_customize_hook and isinstance(self._find(key), Record)
        )
        told = loads(self.controllers.get(controller.id, b"{}"))
        self.queue.set_controller(controller.id, resync_seconds=controller.resync_period_seconds, max_concurrent=max_concurrent(told))
        for target in instance.targets:
            for parent, record in self.caches[target.resource.id].objects.items():
                if not target.serves(record):
                    continue
                key = instance.key(target, parent)
                stats.add(key, former)
                instance.learn_parent(target, parent, record)
                self.queue.mark(key, MarkClass.RETRY, reason)

    def stop(self, controller: ControllerId) -> None:
        """Route nothing to a controller any more."""
        if self.instances.pop(controller, None) is not None:
            del self.stats[controller]
            self._index()
            self.subscriptions.forget_controller(controller)
            self.queue.forget_controller(controller)
            self.on_stop(controller)

    def finalizer_holders(self, controller: ControllerId) -> list[str]:
        """The parents of a running controller that hold its finalizer, as `resource namespace/name`, sorted."""
        instance = self.instances.get(controller)
        if instance is None:
            return []
        found = (
            f"{target.resource.resource} {'/'.join(filter(None, key))}"
            for target in instance.targets
            for key, record in self.caches[target.resource.id].objects.items()
            if target.finalizer in record.finalizers
        )
        return sorted(found)

    def record_report(self, report: SyncReport) -> None:
        """Count how the sync of a parent ended."""
        stats = self.stats.get(report.key.controller)
        if stats is not None:
            stats.record(report)

    def take(self, change: Change) -> None:
        """Mark whom a change concerns."""
        for instance, target in self._by_parent.get(change.resource.id, ()):
            self._take_parent(instance, target, change)
        for instance in self._by_child.get(change.resource.id, ()):
            for parent in set(concerned_by_child(instance, change, self._lookup)):
                self.queue.mark(instance.key(*parent), MarkClass.CHANGED, str(change))
        for key in self.subscriptions.concerned_by(change):
            self.queue.mark(key, MarkClass.CHANGED, f"related {change}")

    def mark_answerable(self) -> None:
        """Mark the parents whose related objects were incomplete and are complete now."""
        for key in self.subscriptions.take_answerable():
            self.queue.mark(key, MarkClass.CHANGED, "its related resources can be watched now")

    def mark_subscribers(self, resource: ResourceId) -> None:
        """Mark the subscribers to a resource that is no longer watched: what they were shown of it may be out of date."""
        for key in self.subscriptions.subscribers_of(resource):
            self.queue.mark(key, MarkClass.CHANGED, f"related {resource} is not watched any more")

    def observe(self, key: JobKey) -> CachedObservation | Gone:
        """The world of one parent as the caches hold it now."""
        parent = self._find(key)
        if isinstance(parent, Gone):
            return parent
        instance = self.instances[key.controller]
        return CachedObservation(
            controller=self.controllers[key.controller],
            parent_resource=self.caches[key.resource].resource,
            parent=parent.raw,
            children=[self._group(resource, instance, parent) for resource in instance.children],
            revisions=self._revisions(key, instance, parent),
            related=self.subscriptions.observe(key),
            part=key.part,
        )

    def subscribe(self, request: RelatedRequest) -> CachedRelated:
        """The related objects that the queries of `request` select. From now on its parent is subscribed to them."""
        return self.subscriptions.subscribe(request.key, request.fingerprint, request.queries)

    def resources_of(self, key: JobKey) -> Iterable[ResourceId]:
        """What the world of one parent is made of: its own resource, and those of what it owns."""
        instance = self.instances.get(key.controller)
        return (key.resource, *(resource.id for resource in instance.owned)) if instance is not None else ()

    def has_seen(self, write: Write) -> bool:
        """Whether the cache of a write's resource is no older than it; a resource that isn't watched can't be waited for."""
        cache = self.caches.get(write.resource)
        return cache is None or cache.has_seen(write)

    def _take_parent(self, instance: Instance, target: Target, change: Change) -> None:
        instance.learn_parent(target, change.key, change.new)
        key = instance.key(target, change.key)
        served = target.serves(change.new)
        stats = self.stats[instance.controller.id]
        stats.parents += served - target.serves(change.old)
        if not served:
            stats.forget(key)
            self.subscriptions.forget(key)
        if change.new is None:
            self.queue.forget(key)
        elif concerned_by_parent(target, change):
            klass = MarkClass.NEW if change.old is None else MarkClass.CHANGED
            self.queue.mark(key, klass, str(change), version=change.new.resource_version)

    def _find(self, key: JobKey) -> Record | Gone:
        """A parent that is served, or why there is none."""
        instance = self.instances.get(key.controller)
        if instance is None:
            return Gone(reason=f"{key.controller} is not running")
        target = instance.target(key.resource)
        if target is None:
            return Gone(reason=f"{key.controller} is not about {key.resource}")
        parent = self._lookup(key.resource, (key.namespace, key.name))
        if parent is None:
            return Gone(reason="the parent is gone")
        return parent if target.serves(parent) else Gone(reason="the parent is not selected")

    def _lookup(self, resource: ResourceId, key: ObjectKey) -> Record | None:
        return self.caches[resource].objects.get(key)

    def _group(self, resource: ResourceInfo, instance: Instance, parent: Record) -> CachedGroup:
        """The candidates of one resource: owned by the parent, or orphans that its selector matches; its neighbours, where it has a namespace."""
        namespace = parent.key[0]
        cache = self.caches[resource.id]
        selector = instance.adopters.selector_of(parent.key)
        owned = (record for record in cache.owned_by(parent.uid) if not namespace or record.key[0] == namespace)
        orphans: Iterable[Record] = cache.orphans(namespace, selector) if selector is not None else ()
        records = [*owned, *orphans]
        managed = {record.uid: record.managed for record in records if record.managed}
        return CachedGroup(resource=resource, objects=[record.raw for record in records], managed=managed)

    def _revisions(self, key: JobKey, instance: Instance, parent: Record) -> list[bytes]:
        """The candidates for a parent's revisions, where its children roll."""
        if instance.revisions is None:
            return []
        cache, namespace = self.caches[instance.revisions.id], revision_namespace(key.namespace)
        selector = instance.adopters.selector_of(parent.key)
        orphans: Iterable[Record] = cache.orphans(namespace, revision_selector(selector, key.resource)) if selector is not None else ()
        owned = (record for record in cache.owned_by(parent.uid) if record.key[0] == namespace)
        return [record.raw for record in (*owned, *orphans)]

    def _index(self) -> None:
        self._by_parent, self._by_child = {}, {}
        for instance in self.instances.values():
            for target in instance.targets:
                self._by_parent.setdefault(target.resource.id, []).append((instance, target))
            for child in instance.owned:
                self._by_child.setdefault(child.id, []).append(instance)
