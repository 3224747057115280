"""For each event, asks the core which parents it concerns and marks them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.observation import CachedGroup, CachedObservation, Gone
from metaloop.common.report import SyncReport, Write
from metaloop.watcher.cache import ResourceCache
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.health import Standing
from metaloop.watcher.core.instance import Instance, concerned_by_child, concerned_by_parent
from metaloop.watcher.core.record import Record
from metaloop.watcher.workqueue import MarkClass, WorkQueue


@dataclass(slots=True, kw_only=True, eq=False)
class Router:
    """The running instances over the caches: who is marked for a change, and what a parent's world looks like."""

    queue: WorkQueue
    caches: Mapping[ResourceId, ResourceCache]
    """By resource; shared with whoever starts and stops watches."""
    instances: dict[ControllerId, Instance] = field(default_factory=dict[ControllerId, Instance])
    controllers: dict[ControllerId, bytes] = field(default_factory=dict[ControllerId, bytes])
    """Each controller object as it is now, which may be newer than the spec that its instance serves."""
    standings: dict[ControllerId, Standing] = field(default_factory=dict[ControllerId, Standing])
    """How many parents each running instance has, and which of them fail."""
    _by_parent: dict[ResourceId, list[Instance]] = field(default_factory=dict[ResourceId, list[Instance]])
    _by_child: dict[ResourceId, list[Instance]] = field(default_factory=dict[ResourceId, list[Instance]])

    def start(self, instance: Instance, *, reason: str) -> None:
        """Route events to an instance, in place of an older one of the same controller, and mark all its parents."""
        controller = instance.controller
        former = self.standings.get(controller.id, Standing())
        standing = self.standings[controller.id] = Standing()
        self.instances[controller.id] = instance
        self._index()
        self.queue.set_controller(controller.id, resync_seconds=controller.resync_period_seconds)
        for parent, record in self.caches[instance.parent.id].objects.items():
            if instance.serves(record):
                key = instance.key(parent)
                standing.parents += 1
                if key in former.failing:
                    standing.failing[key] = former.failing[key]
                instance.learn_parent(parent, record)
                self.queue.mark(key, MarkClass.RETRY, reason)

    def stop(self, controller: ControllerId) -> None:
        """Route nothing to a controller any more."""
        if self.instances.pop(controller, None) is not None:
            del self.standings[controller]
            self._index()
            self.queue.forget_controller(controller)

    def hear(self, report: SyncReport) -> None:
        """A sync of one of our parents ended."""
        standing = self.standings.get(report.key.controller)
        if standing is not None:
            standing.hear(report)

    def take(self, change: Change) -> None:
        """Mark whom a change concerns."""
        for instance in self._by_parent.get(change.resource.id, ()):
            self._take_parent(instance, change)
        for instance in self._by_child.get(change.resource.id, ()):
            reason = str(change)
            for parent in set(concerned_by_child(instance, change, self.caches[instance.parent.id].objects)):
                self.queue.mark(instance.key(parent), MarkClass.CHANGED, reason)

    def observe(self, key: JobKey) -> CachedObservation | Gone:
        """The world of one parent as the caches hold it now."""
        instance = self.instances.get(key.controller)
        if instance is None:
            return Gone(reason=f"{key.controller} is not running")
        parent = self.caches[instance.parent.id].objects.get((key.namespace, key.name))
        if parent is None or not instance.serves(parent):
            return Gone(reason="the parent is gone" if parent is None else "the parent is not selected")
        return CachedObservation(
            controller=self.controllers[key.controller],
            parent_resource=instance.parent,
            parent=parent.raw,
            children=[self._group(resource, instance, parent) for resource in instance.children],
        )

    def has_seen(self, write: Write) -> bool:
        """Whether the cache of a write's resource is no older than it; a resource that isn't watched can't be waited for."""
        cache = self.caches.get(write.resource)
        return cache is None or cache.has_seen(write)

    def _take_parent(self, instance: Instance, change: Change) -> None:
        instance.learn_parent(change.key, change.new)
        served = instance.serves(change.new)
        standing = self.standings[instance.controller.id]
        standing.parents += served - instance.serves(change.old)
        if not served:
            standing.forget(instance.key(change.key))
        if change.new is None:
            self.queue.forget(instance.key(change.key))
        elif concerned_by_parent(instance, change):
            self.queue.mark(instance.key(change.key), MarkClass.CHANGED, str(change))

    def _group(self, resource: ResourceInfo, instance: Instance, parent: Record) -> CachedGroup:
        """The candidates of one resource: owned by the parent, or orphans that its selector matches; its neighbours, where it has a namespace."""
        namespace = parent.key[0]
        cache = self.caches[resource.id]
        selector = instance.adopters.selector_of(parent.key)
        owned = (record for record in cache.owned_by(parent.uid) if not namespace or record.key[0] == namespace)
        orphans: Iterable[Record] = cache.orphans(namespace, selector) if selector is not None else ()
        return CachedGroup(resource=resource, objects=[record.raw for record in (*owned, *orphans)])

    def _index(self) -> None:
        self._by_parent, self._by_child = {}, {}
        for instance in self.instances.values():
            self._by_parent.setdefault(instance.parent.id, []).append(instance)
            for child in instance.children:
                self._by_child.setdefault(child.id, []).append(instance)
