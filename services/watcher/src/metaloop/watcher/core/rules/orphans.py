"""Orphans: the objects of one resource without a controller that parents may adopt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metaloop.common.objects.selector import Selector
from metaloop.watcher.core.adopters import Adopters
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.rules.owned import parent_namespace
from metaloop.watcher.core.rules.parents import Parents
from metaloop.watcher.core.rules.rule import Concern, Group, Shown, Touched, Unit
from metaloop.watcher.core.watch import Watch


def parent_selector(selector: Selector) -> Selector:
    """What the orphans of a parent are labelled with: what its selector asks for."""
    return selector


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Orphans:
    """The objects of a group that have no controller and that a parent's selector matches."""

    parents: Parents
    adopters: Adopters
    """The index of the selectors of `parents`."""
    group: Group
    namespace_of: Callable[[str], str] = parent_namespace
    """The namespace of the orphans of a parent, by the parent's own; empty: any."""
    selector_of: Callable[[Selector], Selector] = parent_selector
    """The selector of the orphans of a parent, by the parent's own."""

    @property
    def watches(self) -> Sequence[Watch]:
        """The resource of the group."""
        return (self.group.watch,)

    def concerned(self, change: Change, caches: Caches) -> Sequence[Concern]:
        """The parents that may adopt an object."""
        del caches
        new = change.new
        if new is None or new.owner is not None or new.is_deleting:
            return ()
        return [Touched(self.parents.key(parent)) for parent in self.adopters.matching(change.key[0], new.labels)]

    def shown(self, unit: Unit, caches: Caches) -> Sequence[Shown]:
        """The objects that the parent may adopt."""
        selector = self.adopters.selector_of(unit.parent.key)
        if selector is None:
            return ()
        cache, namespace = caches[self.group.watch.id], self.namespace_of(unit.parent.key[0])
        return (Shown(self.group, [*cache.orphans(namespace, self.selector_of(selector))]),)
