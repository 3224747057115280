"""One served controller: which resources it is about, and which parents a change of one of them concerns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from metaloop.common.api.composite import CompositeController
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import ControllerRef
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.selector import Requirement, Selector, parse_selector
from metaloop.watcher.core.adopters import Adopters
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.predicate import is_parent, is_status_only
from metaloop.watcher.core.record import ObjectKey, Record

Objects = Mapping[ObjectKey, Record]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Instance:
    """A controller with the resources that its spec names, as the API server serves them."""

    controller: CompositeController
    parent: ResourceInfo
    children: tuple[ResourceInfo, ...]
    """In the order of `spec.childResources`."""
    adopters: Adopters = field(default_factory=Adopters)

    @property
    def resources(self) -> tuple[ResourceInfo, ...]:
        """Everything that it needs watched."""
        return (self.parent, *self.children)

    def key(self, parent: ObjectKey) -> JobKey:
        """The job key of one parent."""
        return JobKey(self.controller.id, self.parent.id, *parent)

    def serves(self, record: Record | None) -> bool:
        """Whether an object is a parent of this controller now."""
        return is_parent(record, selector=self.controller.parent.selector, finalizer=self.controller.finalizer)

    def learn_parent(self, key: ObjectKey, record: Record | None) -> None:
        """Have orphans find the parent by its selector, or no longer."""
        selector = child_selector(self.controller, record.parse()) if record is not None and self.serves(record) else None
        if selector is None:
            self.adopters.remove(key)
        else:
            self.adopters.put(key, selector)


def child_selector(controller: CompositeController, parent: JsonObject) -> Selector | None:
    """What a parent's children must be labelled with; None where its own selector is missing, empty or malformed, so that it adopts nothing."""
    if controller.generate_selector:
        return Selector((Requirement("controller-uid", "In", (unstructured.uid(parent),)),))
    try:
        selector = parse_selector(unstructured.child_object(parent, "spec").get("selector"), "spec.selector")
    except InvalidSpec:
        return None
    return None if selector.is_empty else selector


def concerned_by_parent(instance: Instance, change: Change) -> bool:
    """Whether a parent's own change makes it worth a sync."""
    if change.new is None or not instance.serves(change.new):
        return False
    if change.old is None or not instance.controller.parent.ignore_status_changes:
        return True
    return not is_status_only(change.old, change.new)


def concerned_by_child(instance: Instance, change: Change, parents: Objects) -> Iterator[ObjectKey]:
    """The parents that a child's change concerns: its controller; a controller that it lost; those that may adopt an orphan."""
    old_owner = change.old.owner if change.old else None
    new_owner = change.new.owner if change.new else None
    if new_owner is not None:
        yield from _owner(instance, new_owner, change.key, parents)
    elif change.new is not None and not change.new.is_deleting:
        yield from instance.adopters.matching(change.key[0], change.new.labels)
    if old_owner is not None and (new_owner is None or new_owner.uid != old_owner.uid):
        yield from _owner(instance, old_owner, change.key, parents)


def _owner(instance: Instance, owner: ControllerRef, child: ObjectKey, parents: Objects) -> Iterator[ObjectKey]:
    """The parent that an owner reference means: same group (its version doesn't matter), kind, name and UID, and served."""
    if owner.kind != instance.parent.kind or owner.group != instance.parent.group:
        return
    key = (child[0] if instance.parent.namespaced else "", owner.name)
    record = parents.get(key)
    if record is not None and record.uid == owner.uid and instance.serves(record):
        yield key
