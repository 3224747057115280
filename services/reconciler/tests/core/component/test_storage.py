"""Where an inventory is stored: in the status, or in ConfigMaps, each named by its content."""

import pytest
from components import NOW, key

from metaloop.common.api.policies import InventoryStorage
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.identity import ObjectKey
from metaloop.reconciler.core.component.inventory import Item, inventory_in
from metaloop.reconciler.core.component.storage import (
    MOST_STATUS_BYTES,
    StoredInventory,
    config_map_of,
    is_piece_of,
    joined,
    names_in,
    stored,
    stores,
)

MANY = 3000


def items(count: int, *, changed: str = "") -> dict[ObjectKey, Item]:
    """Items of so many ConfigMaps. One of them may have been changed."""
    keys = [key(f"object-{number:04}") for number in range(count)]
    return {
        each: Item(
            key=each,
            version="v1",
            digest=("x" if each.name == changed else "d") * 64,
            phase="Ready",
            status="Current",
            last_applied_at=NOW.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        for each in keys
    }


def component(*, namespace: str = "default", uid: str = "uid-of-app", **status: object) -> JsonObject:
    """A component with this status."""
    metadata: JsonObject = {"name": "app", "uid": uid}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "example.com/v1", "kind": "App", "metadata": metadata, "status": status}  # type: ignore[dict-item]


def config_maps(of: StoredInventory, owner: JsonObject) -> list[JsonObject]:
    """The ConfigMaps of a stored inventory."""
    return [config_map_of(piece, owner, labels={"op.example.com/owner-id": "us"}) for piece in of.pieces]


def test_small_inventory_is_in_the_status():
    found = stored(items(3), component(), choice="Status")

    assert (list(found.fields), found.pieces) == (["inventory"], ())
    assert inventory_in(found.fields) == items(3)


CHOICES: dict[str, tuple[int, InventoryStorage, JsonObject, bool]] = {
    # what it shows: (how many items, the choice, the component, whether ConfigMaps are used)
    "few items": (3, "Status", component(), False),
    "few items by choice": (3, "ConfigMap", component(), True),
    "no items": (0, "ConfigMap", component(), False),
    "many items": (MANY, "Status", component(), True),
    "many items without a namespace": (MANY, "Status", component(namespace=""), False),
    "fewer items in the status": (1000, "Status", component(inventory=[]), False),
    "as many in ConfigMaps already": (1000, "Status", component(inventoryConfigMaps=["app-inventory-1"]), True),
    "few that were in ConfigMaps": (3, "Status", component(inventoryConfigMaps=["app-inventory-1"]), False),
}


@pytest.mark.parametrize("case", CHOICES.values(), ids=CHOICES.keys())
def test_place_of_an_inventory(case: tuple[int, InventoryStorage, JsonObject, bool]):
    count, choice, owner, in_config_maps = case

    found = stored(items(count), owner, choice=choice)

    assert bool(found.pieces) == in_config_maps
    assert list(names_in(found.fields)) == [piece.name for piece in found.pieces]


def test_three_thousand_items_fit_into_what_etcd_takes():
    found = stored(items(MANY), component(), choice="Status")

    assert len(dumps(found.fields)) < 8 * 1024
    assert max(len(dumps(each)) for each in config_maps(found, component())) < MOST_STATUS_BYTES


def test_inventory_is_read_again_in_its_order():
    owner, before = component(), items(MANY)

    found = joined(config_maps(stored(before, owner, choice="Status"), owner))

    assert list(found.items()) == list(before.items())


def test_changed_item_changes_one_config_map():
    before = {piece.name for piece in stored(items(MANY), component(), choice="Status").pieces}

    after = {piece.name for piece in stored(items(MANY, changed="object-1500"), component(), choice="Status").pieces}

    assert len(after - before) == 1
    assert len(before - after) == 1


def test_new_item_changes_few_config_maps():
    before = {piece.name for piece in stored(items(MANY), component(), choice="Status").pieces}
    more = dict(sorted({**items(MANY), key("object-1500-a"): Item(key=key("object-1500-a"), version="v1")}.items()))

    after = {piece.name for piece in stored(more, component(), choice="Status").pieces}

    assert len(after - before) <= 2


def test_config_map_belongs_to_the_component_and_is_never_changed():
    owner = component()

    [found] = config_maps(stored(items(1), owner, choice="ConfigMap"), owner)

    [reference] = unstructured.child_objects(unstructured.metadata(found), "ownerReferences")
    assert (reference["uid"], reference["controller"], found["immutable"]) == ("uid-of-app", False, True)
    assert unstructured.labels(found) == {"op.example.com/owner-id": "us"}
    assert is_piece_of(owner, found)


def test_changed_or_foreign_config_map_is_no_piece():
    owner = component()
    [found] = config_maps(stored(items(1), owner, choice="ConfigMap"), owner)
    [row] = loads(unstructured.text(unstructured.child_object(found, "data"), "inventory"))

    assert not is_piece_of(owner, {**found, "data": {"inventory": dumps([{**row, "phase": "Deleting"}]).decode()}})
    assert not is_piece_of(owner, {**found, "data": {}})
    assert not is_piece_of(owner, {**found, "kind": "Secret"})
    assert not is_piece_of(component(uid="another"), found)
    assert not is_piece_of(component(namespace="elsewhere"), found)


def test_long_name_of_a_component_is_shortened():
    owner = component()
    unstructured.metadata(owner)["name"] = "a" * 253

    [piece] = stored(items(1), owner, choice="ConfigMap").pieces

    assert len(piece.name) <= 253


@pytest.mark.parametrize("choice", ["Status", "ConfigMap"])
def test_status_that_drops_fields_is_found(choice: InventoryStorage):
    found = stored(items(1), component(), choice=choice)

    assert stores({**found.fields, "state": "Ready"}, found)
    assert not stores({"state": "Ready"}, found)


def test_empty_inventory_may_be_dropped():
    assert stores({}, stored({}, component(), choice="Status"))
