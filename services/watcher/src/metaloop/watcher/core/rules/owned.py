"""Owned: the objects of one resource that parents control."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metaloop.common.objects.owner import ControllerRef
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.record import ObjectKey
from metaloop.watcher.core.rules.parents import Parents
from metaloop.watcher.core.rules.rule import Concern, Group, Shown, Touched, Unit
from metaloop.watcher.core.watch import Watch


def parent_namespace(namespace: str) -> str:
    """Where the children of a parent are: in its own namespace; those of a cluster-scoped parent anywhere."""
    return namespace


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Owned:
    """The objects of a group whose controller is a parent."""

    parents: tuple[Parents, ...]
    group: Group
    namespace_of: Callable[[str], str] = parent_namespace
    """The namespace of the objects of a parent, by the parent's own; empty: any."""

    @property
    def watches(self) -> Sequence[Watch]:
        """The resource of the group."""
        return (self.group.watch,)

    def concerned(self, change: Change, caches: Caches) -> Sequence[Concern]:
        """The parent that controls an object, and the one that no longer does."""
        before = change.old.owner if change.old is not None else None
        after = change.new.owner if change.new is not None else None
        if before is None or (after is not None and after.uid == before.uid):
            return self._touched(after, change.key, caches)
        return [*self._touched(after, change.key, caches), *self._touched(before, change.key, caches)]

    def shown(self, unit: Unit, caches: Caches) -> Sequence[Shown]:
        """The objects that the parent controls."""
        namespace = self.namespace_of(unit.parent.key[0])
        owned = caches[self.group.watch.id].owned_by(unit.parent.uid)
        return (Shown(self.group, [record for record in owned if not namespace or record.key[0] == namespace]),)

    def _touched(self, owner: ControllerRef | None, child: ObjectKey, caches: Caches) -> Sequence[Touched]:
        """The parent that an owner reference means: of the same group (in any version), kind, name and UID."""
        if owner is None:
            return ()
        for parents in self.parents:
            resource = parents.watch.resource
            if owner.kind != resource.kind or owner.group != resource.group:
                continue
            key = (child[0] if resource.namespaced else "", owner.name)
            parent = parents.find(key, caches)
            if parent is not None and parent.uid == owner.uid:
                return (Touched(parents.key(key)),)
        return ()
