"""Parents: the objects of one resource that a controller selects. Each is a unit of work."""

from collections.abc import Sequence
from dataclasses import dataclass

from metaloop.common.api.controller import ParentRule
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects import unstructured
from metaloop.watcher.core.adopters import Adopters
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.fair_queue import MarkClass
from metaloop.watcher.core.predicate import is_status_only
from metaloop.watcher.core.record import ObjectKey, Record
from metaloop.watcher.core.rules.rule import Concern, Ended, Shown, Touched, Unit
from metaloop.watcher.core.watch import Watch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parents:
    """The parents of one resource.

    A parent is an object that is selected, or one that was and still carries the controller's finalizer.
    """

    controller: ControllerId
    watch: Watch
    selection: ParentRule
    finalizer: str
    adopters: Adopters | None = None
    """The index of the parents' selectors; None where parents adopt nothing."""

    @property
    def watches(self) -> Sequence[Watch]:
        """The parent resource."""
        return (self.watch,)

    def key(self, parent: ObjectKey, part: str = "") -> JobKey:
        """The unit of work of a parent, or of a part of it."""
        return JobKey(self.controller, self.watch.resource.id, parent[0], parent[1], part)

    def serves(self, record: Record | None) -> bool:
        """Whether an object is a parent now."""
        return record is not None and (self._selects(record) or self.finalizer in record.finalizers)

    def find(self, key: ObjectKey, caches: Caches) -> Record | None:
        """The parent with this name; None where there is none."""
        record = caches.lookup(self.watch.id, key)
        return record if self.serves(record) else None

    def concerned(self, change: Change, caches: Caches) -> Sequence[Concern]:
        """The parent that changed, unless nothing of it is news."""
        del caches
        new, was_parent = change.new, self.serves(change.old)
        if new is None or not self.serves(new):
            self._learn(change.key, None)
            return (Ended(self.key(change.key), was_parent),)
        self._learn(change.key, new)
        # An object that was no parent before is news even if only its status changed.
        if was_parent and not self._is_news(change.old, new):
            return ()
        klass = MarkClass.NEW if change.old is None else MarkClass.CHANGED
        return (Touched(self.key(change.key), klass, new.resource_version, not was_parent),)

    def shown(self, unit: Unit, caches: Caches) -> Sequence[Shown]:
        """Nothing: an observation holds the parent anyway."""
        del unit, caches
        return ()

    def _selects(self, record: Record) -> bool:
        if not self.selection.labels.matches(record.labels):
            return False
        annotations = self.selection.annotations
        return annotations.is_empty or annotations.matches(unstructured.annotations(record.parse()))

    def _learn(self, key: ObjectKey, parent: Record | None) -> None:
        if self.adopters is not None:
            self.adopters.learn(key, parent)

    def _is_news(self, old: Record | None, new: Record) -> bool:
        return old is None or not self.selection.ignore_status_changes or not is_status_only(old, new)
