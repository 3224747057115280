"""Where an inventory is stored: in the status of its component, or in ConfigMaps that belong to the component.

Rules
    1. The status says which ConfigMaps have the inventory. A ConfigMap is named by its content, and never changed. So
       an inventory takes the place of another at one moment: when the status is written.
    2. ConfigMaps are created before the status names them, and deleted after it ceased to.
    3. What a crash leaves behind is named by no status. The next pass deletes it.
    4. The keys of the items decide where one ConfigMap ends. So a changed item changes one ConfigMap.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from zlib import crc32

from metaloop.common.api.policies import InventoryStorage
from metaloop.common.json import JSONDecodeError, JsonObject, JsonValue, dumps, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import reference_to
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.component.identity import ObjectKey
from metaloop.reconciler.core.component.inventory import Item, inventory_in, inventory_json

CONFIG_MAPS: Final = ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True)
INVENTORY: Final = "inventory"
"""The field of the status, and the key in the data of a ConfigMap."""
NAMED: Final = "inventoryConfigMaps"
"""The field of the status with the names of the ConfigMaps, in their order."""

MOST_STATUS_BYTES: Final = 512 * 1024
"""How large an inventory in the status may become. etcd takes 1.5 MB, and the component has other fields as well."""
_BACK_BELOW: Final = MOST_STATUS_BYTES // 2
"""An inventory in ConfigMaps returns to the status once it is smaller than this."""
_USUAL_ITEMS: Final = 128
"""How many items a ConfigMap has on average."""
_MOST_ITEMS: Final = 768
_MARK: Final = f"-{INVENTORY}-"
"""What the name of a ConfigMap with a part of an inventory contains."""
_LONGEST_NAME: Final = 200
_DIGEST_LENGTH: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of an inventory: the name and the content of its ConfigMap."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredInventory:
    """An inventory as it is stored. `fields` are those of the status, and `pieces` the ConfigMaps that it needs."""

    items: Mapping[ObjectKey, Item]
    fields: JsonObject
    pieces: tuple[Piece, ...] = ()


def names_in(status: JsonObject) -> tuple[str, ...]:
    """The names of the ConfigMaps that have the inventory. Empty if the status has it itself."""
    names = status.get(NAMED)
    return tuple([each for each in names if isinstance(each, str)]) if isinstance(names, list) else ()


def fields_in(status: JsonObject) -> JsonObject:
    """The fields of a status that say where the inventory is, or have it."""
    return {name: status[name] for name in (INVENTORY, NAMED) if name in status}


def stores(status: JsonObject, stored: StoredInventory) -> bool:
    """Whether a status that was written kept what it was given."""
    return all(bool(status.get(name)) == bool(value) for name, value in stored.fields.items())


# -- to store an inventory ---------------------------------------------------------------------------------------------


def stored(items: Mapping[ObjectKey, Item], component: JsonObject, *, choice: InventoryStorage) -> StoredInventory:
    """The items, ready to be stored for a component."""
    rows = inventory_json(items)
    if not _needs_config_maps(rows, component, choice):
        values: list[JsonValue] = [*rows]
        return StoredInventory(items=items, fields={INVENTORY: values})
    pieces = tuple(_pieces(rows, items, component))
    return StoredInventory(items=items, fields={NAMED: [piece.name for piece in pieces]}, pieces=pieces)


def _needs_config_maps(rows: Sequence[JsonObject], component: JsonObject, choice: InventoryStorage) -> bool:
    # A component without a namespace has no place for ConfigMaps.
    if not rows or not unstructured.namespace(component):
        return False
    was_in_config_maps = bool(names_in(unstructured.child_object(component, "status")))
    return choice == "ConfigMap" or len(dumps(rows)) > (_BACK_BELOW if was_in_config_maps else MOST_STATUS_BYTES)


def _pieces(rows: Sequence[JsonObject], items: Iterable[ObjectKey], component: JsonObject) -> Iterator[Piece]:
    begun: list[JsonObject] = []
    for key, row in zip(items, rows, strict=True):
        begun.append(row)
        if len(begun) >= _MOST_ITEMS or _ends_piece(key):
            yield _piece(begun, component)
            begun = []
    if begun:
        yield _piece(begun, component)


def _ends_piece(key: ObjectKey) -> bool:
    return crc32("/".join(key).encode()) % _USUAL_ITEMS == 0


def _piece(rows: Sequence[JsonObject], component: JsonObject) -> Piece:
    text = dumps(rows).decode()
    return Piece(name=_name_of(text, component), text=text)


def _name_of(text: str, component: JsonObject) -> str:
    digest = sha256(f"{unstructured.uid(component)}\n{text}".encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{unstructured.name(component)[:_LONGEST_NAME].rstrip('.-')}{_MARK}{digest}"


def config_map_of(piece: Piece, component: JsonObject, *, labels: Mapping[str, str]) -> JsonObject:
    """The ConfigMap of a piece. The garbage collector deletes it with the component."""
    own: JsonObject = {**reference_to(component), "controller": False, "blockOwnerDeletion": False}
    metadata: JsonObject = {
        "name": piece.name,
        "namespace": unstructured.namespace(component),
        "labels": {**labels},
        "ownerReferences": [own],
    }
    return {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": metadata,
        "immutable": True,
        "data": {INVENTORY: piece.text},
    }


# -- to read it again --------------------------------------------------------------------------------------------------


def is_piece_of(component: JsonObject, obj: JsonObject) -> bool:
    """Whether an object is a ConfigMap with a part of the inventory of this component, as it was created."""
    if _MARK not in unstructured.name(obj):  # most objects are none, and that is soon seen
        return False
    text = _text_of(obj)
    return (
        unstructured.kind(obj) == CONFIG_MAPS.kind
        and unstructured.namespace(obj) == unstructured.namespace(component)
        and bool(text)
        and unstructured.name(obj) == _name_of(text, component)
    )


def joined(pieces: Iterable[JsonObject]) -> dict[ObjectKey, Item]:
    """The inventory in these ConfigMaps, in their order."""
    return {key: item for piece in pieces for key, item in _items_in(piece).items()}


def _items_in(piece: JsonObject) -> dict[ObjectKey, Item]:
    try:
        return inventory_in({INVENTORY: loads(_text_of(piece))})
    except JSONDecodeError:
        return {}


def _text_of(obj: JsonObject) -> str:
    return unstructured.text(unstructured.child_object(obj, "data"), INVENTORY)
