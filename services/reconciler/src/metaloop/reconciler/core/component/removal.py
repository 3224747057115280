"""What a pass does about objects that have to go: those that are no longer desired, or all if the component goes.

Rules
    1. The wave comes first. Within it, instances of managed types go before everything else.
    2. A namespace goes once nothing of the component is in it, and a type once no instance of it is.
    3. An object that is not ours is left alone, and so is one whose policy says so. Both leave the inventory.
    4. The next wave begins once nothing of the waves before it is left.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from metaloop.common.api.policies import DeletePolicy
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.identity import Marks, ObjectKey
from metaloop.reconciler.core.component.inventory import Inventory, Item
from metaloop.reconciler.core.component.item_index import indexed
from metaloop.reconciler.core.component.managed_types import ManagedType, is_managed
from metaloop.reconciler.core.component.order import grouped

Occasion: TypeAlias = Literal["apply", "delete"]
"""Why objects go: the component no longer wants them, or it goes itself."""

_ORPHANED: Final[Mapping[Occasion, frozenset[DeletePolicy]]] = {
    "apply": frozenset({"Orphan", "OrphanOnApply"}),
    "delete": frozenset({"Orphan", "OrphanOnDelete"}),
}
"""The policies by which an object is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What to do next about objects that have to go."""

    delete: tuple[ObjectKey, ...] = ()
    """To be deleted now."""
    forget: tuple[ObjectKey, ...] = ()
    """Gone, or left alone: they leave the inventory."""
    pending: tuple[ObjectKey, ...] = ()
    """Waited for: they are being deleted, or others have to go first."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to delete or to wait for."""
        return not self.delete and not self.pending


def going(inventory: Inventory, occasion: Occasion) -> tuple[Item, ...]:
    """The items whose objects have to go, in the order in which they go."""
    return tuple([item for item in inventory.values() if occasion == "delete" or not item.is_desired])


def is_orphaned(item: Item, occasion: Occasion) -> bool:
    """Whether an object is left alone by its policy."""
    return item.delete in _ORPHANED[occasion]


def candidates(inventory: Inventory, occasion: Occasion, types: Sequence[ManagedType]) -> tuple[Item, ...]:
    """The items that may go now: those of the first wave, and of these only the instances of managed types, if any."""
    _, wave = next(grouped(going(inventory, occasion), lambda item: item.delete_order), (0, []))
    instances = tuple([item for item in wave if _is_instance(item, types)])
    if instances:
        return instances
    index = indexed(inventory.values())
    return tuple([item for item in wave if not index.needing(item)])


def removal_of(wave: Iterable[Item], live: Mapping[ObjectKey, JsonObject], marks: Marks, *, occasion: Occasion) -> Removal:
    """What to do about the `wave` of candidates. `live` has those of their objects that exist."""
    delete: list[ObjectKey] = []
    forget: list[ObjectKey] = []
    pending: list[ObjectKey] = []
    for item in wave:
        obj = live.get(item.key)
        if obj is None or is_orphaned(item, occasion) or marks.ownership(obj) != "ours":
            forget.append(item.key)
        elif unstructured.is_deleting(obj):
            pending.append(item.key)
        else:
            delete.append(item.key)
    return Removal(delete=tuple(delete), forget=tuple(forget), pending=tuple(pending))


def deleting(item: Item) -> Item:
    """The item of an object that is being deleted."""
    return replace(item, phase="Deleting", status="Terminating")


def completing(item: Item, *, is_present: bool) -> Item:
    """The item of an object that is purged: it is still there, or it is gone."""
    return replace(item, phase="Completing", status="Terminating") if is_present else replace(item, phase="Completed", status="")


def _is_instance(item: Item, types: Sequence[ManagedType]) -> bool:
    return is_managed(types, group=item.key.group, version=item.version, kind=item.key.kind)
