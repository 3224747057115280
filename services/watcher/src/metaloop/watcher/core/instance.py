"""One served controller: which resources it is about, and which parents a change of one of them concerns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from metaloop.common.api.composite import CompositeController, child_selector
from metaloop.common.api.controller import Controller
from metaloop.common.errors import InvalidParent
from metaloop.common.job import JobKey
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import ControllerRef
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.selector import EVERYTHING, Selector
from metaloop.watcher.core.adopters import Adopters
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.predicate import is_status_only
from metaloop.watcher.core.record import ObjectKey, Record

Lookup: TypeAlias = Callable[[ResourceId, ObjectKey], Record | None]
"""An object as it is cached, if it is."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Target:
    """One parent resource of a controller, and which of its objects are parents."""

    resource: ResourceInfo
    finalizer: str
    labels: Selector = EVERYTHING
    annotations: Selector = EVERYTHING
    ignore_status_changes: bool = False

    def serves(self, record: Record | None) -> bool:
        """Whether an object is a parent now: it is selected, or was and still carries our finalizer."""
        return record is not None and (self._selects(record) or self.finalizer in record.finalizers)

    def _selects(self, record: Record) -> bool:
        if not self.labels.matches(record.labels):
            return False
        return self.annotations.is_empty or self.annotations.matches(unstructured.annotations(record.parse()))


class Parent(NamedTuple):
    """A parent by its resource and key."""

    target: Target
    key: ObjectKey


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Instance:
    """A controller with the resources that its spec names, as the API server serves them."""

    controller: Controller
    targets: tuple[Target, ...]
    """Of a CompositeController one."""
    children: tuple[ResourceInfo, ...]
    """In the order of the spec."""
    revisions: ResourceInfo | None = None
    """ControllerRevisions, where children roll from one to the next."""
    adopters: Adopters = field(default_factory=Adopters)
    """Of a CompositeController its parents; a DecoratorController adopts nothing."""

    @property
    def resources(self) -> tuple[ResourceInfo, ...]:
        """Everything that it needs watched."""
        return (*(target.resource for target in self.targets), *self.owned)

    @property
    def owned(self) -> tuple[ResourceInfo, ...]:
        """Whose objects belong to parents: children, and revisions."""
        return self.children if self.revisions is None else (*self.children, self.revisions)

    @property
    def has_customize_hook(self) -> bool:
        """Whether its parents may subscribe to related objects."""
        customize = self.controller.hooks.customize
        return customize is not None and customize.webhook is not None

    def key(self, target: Target, parent: ObjectKey) -> JobKey:
        """The job key of one parent."""
        return JobKey(self.controller.id, target.resource.id, *parent)

    def target(self, resource: ResourceId) -> Target | None:
        """The target of a resource; None where its objects are no parents."""
        return next((target for target in self.targets if target.resource.id == resource), None)

    def learn_parent(self, target: Target, key: ObjectKey, record: Record | None) -> None:
        """Have orphans find the parent by its selector, or no longer."""
        if not isinstance(self.controller, CompositeController):
            return
        selector = _selector_of(self.controller, record) if record is not None and target.serves(record) else None
        if selector is None:
            self.adopters.remove(key)
        else:
            self.adopters.put(key, selector)


def _selector_of(controller: CompositeController, parent: Record) -> Selector | None:
    """The labels of a parent's children; None for a parent whose selector makes no sense: it adopts nothing."""
    try:
        return child_selector(controller, parent.parse())
    except InvalidParent:
        return None


def concerned_by_parent(target: Target, change: Change) -> bool:
    """Whether a parent's own change makes it worth a sync."""
    if change.new is None or not target.serves(change.new):
        return False
    if change.old is None or not target.ignore_status_changes:
        return True
    # One that wasn't served before is news, though it may differ in nothing that counts.
    return not is_status_only(change.old, change.new) or not target.serves(change.old)


def concerned_by_child(instance: Instance, change: Change, lookup: Lookup) -> Iterator[Parent]:
    """The parents that a child's change concerns: its controller; a controller that it lost; those that may adopt an orphan."""
    old_owner = change.old.owner if change.old else None
    new_owner = change.new.owner if change.new else None
    if new_owner is not None:
        yield from _owner(instance, new_owner, change.key, lookup)
    elif change.new is not None and not change.new.is_deleting:
        for key in instance.adopters.matching(change.key[0], change.new.labels):
            yield Parent(instance.targets[0], key)
    if old_owner is not None and (new_owner is None or new_owner.uid != old_owner.uid):
        yield from _owner(instance, old_owner, change.key, lookup)


def _owner(instance: Instance, owner: ControllerRef, child: ObjectKey, lookup: Lookup) -> Iterator[Parent]:
    """The parent that an owner reference means: same group (its version doesn't matter), kind, name and UID, and served."""
    for target in instance.targets:
        if owner.kind != target.resource.kind or owner.group != target.resource.group:
            continue
        key = (child[0] if target.resource.namespaced else "", owner.name)
        record = lookup(target.resource.id, key)
        if record is not None and record.uid == owner.uid and target.serves(record):
            yield Parent(target, key)
