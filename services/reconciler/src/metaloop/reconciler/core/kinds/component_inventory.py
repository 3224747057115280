"""Reads and writes the inventory of a component, wherever it is stored."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from metaloop.common.api.policies import InventoryStorage
from metaloop.common.errors import InvalidParent
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.cluster import Address
from metaloop.reconciler.core.component.identity import Marks, ObjectKey
from metaloop.reconciler.core.component.inventory import Item, inventory_in
from metaloop.reconciler.core.component.storage import (
    CONFIG_MAPS,
    NAMED,
    StoredInventory,
    config_map_of,
    fields_in,
    is_piece_of,
    joined,
    names_in,
    stored,
)
from metaloop.reconciler.core.model import CreateChild, DeleteChild, Observed, Plan
from metaloop.reconciler.core.steps import Steps, read_objects, write_children
from metaloop.reconciler.errors import Failure, WritesFailed

_REASON_TO_CREATE: Final = "it has a part of the inventory"
_REASON_TO_DELETE: Final = "the inventory no longer has this part"


@dataclass(slots=True, kw_only=True)
class InventoryStore:
    """What a pass knows of the inventory as it is stored."""

    last: StoredInventory
    """What was last read or written."""
    pieces: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """The ConfigMaps that exist, as far as they are known, by name."""

    @classmethod
    def of(cls, component: JsonObject) -> "InventoryStore":
        """That of a component, before it is read."""
        return cls(last=StoredInventory(items={}, fields=fields_in(unstructured.child_object(component, "status"))))

    @property
    def uses_config_maps(self) -> bool:
        """Whether the inventory is in ConfigMaps."""
        return NAMED in self.last.fields or bool(self.pieces)

    def load(self, observed: Observed) -> Steps[dict[ObjectKey, Item]]:
        """Read the inventory. What the watcher showed of it is not read again.

        Raises InvalidParent if a part of it is gone: nobody knows then what was deployed.
        """
        component = observed.parent
        status = unstructured.child_object(component, "status")
        names = names_in(status)
        self.pieces = {unstructured.name(obj): obj for obj in _shown_pieces(observed)}
        unseen = [name for name in names if name not in self.pieces]
        found = yield from read_objects([Address(CONFIG_MAPS, observed.namespace, name) for name in unseen])
        self.pieces |= {unstructured.name(obj): obj for obj in found if obj is not None and is_piece_of(component, obj)}
        lost = [name for name in names if name not in self.pieces]
        if lost:
            raise InvalidParent(f"status.{NAMED}", f"ConfigMap {lost[0]}, which has a part of the inventory, is gone or was changed")
        items = joined(self.pieces[name] for name in names) if names else inventory_in(status)
        self.last = StoredInventory(items=dict(items), fields=fields_in(status))
        return items

    def prepare(self, observed: Observed, items: dict[ObjectKey, Item], *, choice: InventoryStorage, marks: Marks) -> Steps[JsonObject]:
        """The fields of the status for these items. The ConfigMaps that they name exist then. Raises WritesFailed."""
        is_unchanged = items == self.last.items and not self._is_to_move(choice)
        if is_unchanged or not marks.prefix:  # before a pass knows its marks, it has changed nothing
            return self.last.fields
        wanted = stored(dict(items), observed.parent, choice=choice)
        new = [config_map_of(piece, observed.parent, labels=_labels(marks)) for piece in wanted.pieces if piece.name not in self.pieces]
        if new:
            yield from self._create(observed, new)
        self.last = wanted
        return wanted.fields

    def _is_to_move(self, choice: InventoryStorage) -> bool:
        return choice == "ConfigMap" and bool(self.last.items) and NAMED not in self.last.fields

    def _create(self, observed: Observed, config_maps: list[JsonObject]) -> Steps[None]:
        writes = tuple([CreateChild(info=CONFIG_MAPS, obj=obj, reason=_REASON_TO_CREATE) for obj in config_maps])
        effects = yield from write_children(observed, Plan(writes=writes), ())
        self.pieces |= {unstructured.name(done.action.obj): done.written or done.action.obj for done in effects.done}
        if effects.failures:
            yield from self._find_taken(observed, config_maps, effects.failures)

    def _find_taken(self, observed: Observed, config_maps: list[JsonObject], failures: tuple[Failure, ...]) -> Steps[None]:
        """A pass that crashed may have created them already. Raises WritesFailed if any is not as it should be."""
        missing = [unstructured.name(obj) for obj in config_maps if unstructured.name(obj) not in self.pieces]
        found = yield from read_objects([Address(CONFIG_MAPS, observed.namespace, name) for name in missing])
        self.pieces |= {unstructured.name(obj): obj for obj in found if obj is not None and is_piece_of(observed.parent, obj)}
        if any(name not in self.pieces for name in missing):
            raise WritesFailed(failures)

    def tidy(self, observed: Observed) -> Steps[None]:
        """Delete the ConfigMaps that the status does not name. One that can't be deleted now is deleted later."""
        named = set(names_in(self.last.fields))
        unnamed = [obj for name, obj in self.pieces.items() if name not in named]
        if unnamed:
            deletions = tuple([DeleteChild(info=CONFIG_MAPS, obj=obj, reason=_REASON_TO_DELETE) for obj in unnamed])
            effects = yield from write_children(observed, Plan(deletions=deletions), ())
            for done in effects.done:
                self.pieces.pop(unstructured.name(done.action.obj), None)


def _labels(marks: Marks) -> dict[str, str]:
    return {marks.owner_key: marks.owner_label}


def _shown_pieces(observed: Observed) -> Iterator[JsonObject]:
    """The pieces among the objects that the watcher showed."""
    shown: Iterable[JsonObject] = [
        obj for group in (observed.related.groups if observed.related else ()) if group.info.id == CONFIG_MAPS.id for obj in group.objects
    ]
    return (obj for obj in shown if is_piece_of(observed.parent, obj))
