"""Inventories in ConfigMaps, pass by pass: what is written in which order, and what is left after a crash."""

from collections.abc import Mapping

import pytest
from component_world import World, a_component_controller
from components import PREFIX, manifest

from metaloop.common.errors import Conflict, InvalidParent
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.identity import ObjectKey
from metaloop.reconciler.core.component.storage import names_in
from metaloop.reconciler.core.effects import describe
from metaloop.reconciler.core.steps import EditParent, Step, WriteChildren

MANY = 1500


@pytest.fixture
def world() -> World:
    return World(controller=a_component_controller(inventoryStorage="ConfigMap"))


def pieces(world: World) -> list[str]:
    """The names of the ConfigMaps with parts of the inventory that exist."""
    return sorted(key.name for key in world.objects if "-inventory-" in key.name)


def order_of(steps: list[Step]) -> list[str]:
    """What was written, in order: `create piece`, `create a`, `status`."""
    written: list[str] = []
    for step in steps:
        match step:
            case WriteChildren(_, plan, _):
                written += [describe(action).replace("ConfigMap default/app-inventory-", "piece ") for action in plan]
            case EditParent(_, edit) if edit.subresource == "status":
                written.append("status")
            case _:
                pass
    return [" ".join(each.split()[:2]) for each in written]


def without(objects: Mapping[ObjectKey, JsonObject], name: str) -> dict[ObjectKey, JsonObject]:
    """The objects without the one of this name."""
    return {key: obj for key, obj in objects.items() if key.name != name}


def test_config_map_is_there_before_the_status_names_it(world: World):
    world.desires(manifest("Service", "a"))

    world.run()

    assert order_of(world.steps)[:3] == ["create piece", "status", "create Service"]


def test_status_names_the_config_maps_and_has_no_items(world: World):
    world.desires(manifest("Service", "a"))

    world.run()

    assert "inventory" not in world.status
    assert list(names_in(world.status)) == pieces(world)
    assert world.phases == {"a": "Ready"}
    [piece] = [obj for key, obj in world.objects.items() if key.name in pieces(world)]
    assert f"{PREFIX}/owner-id" in unstructured.labels(piece)


def test_component_in_sync_costs_no_reads_and_no_writes(world: World):
    world.desires(manifest(name="a"), manifest("Service", "b"))
    world.run()
    world.run()

    world.run(after_seconds=60)

    assert (world.written, world.reads) == ([], [])


def test_config_map_that_is_named_no_more_is_deleted(world: World):
    world.desires(manifest(name="a"))
    world.run()
    before = pieces(world)

    world.desires(manifest(name="a"), manifest(name="b"))
    world.run()

    assert len(pieces(world)) == 1
    assert pieces(world) != before


def test_large_inventory_moves_to_config_maps_and_back():
    world = World()
    world.desires(*(manifest(name=f"object-{number}") for number in range(MANY)))
    world.run()
    assert len(pieces(world)) > 5
    assert (len(world.inventory), world.status["state"]) == (MANY, "Ready")

    world.desires(manifest(name="object-1"))
    world.run()
    world.run()

    assert pieces(world) == []
    assert list(world.inventory) == [ObjectKey("", "ConfigMap", "default", "object-1")]


def test_inventory_moves_by_choice():
    world = World()
    world.desires(manifest(name="a"))
    world.run()
    assert "inventory" in world.status

    world.controller = a_component_controller(inventoryStorage="ConfigMap")
    world.run()

    assert "inventory" not in world.status
    assert world.phases == {"a": "Ready"}


def test_crash_before_the_status_is_written_leaves_the_former_inventory(world: World):
    world.desires(manifest(name="a"))
    world.run()
    before, component = pieces(world), world.component
    world.desires(manifest(name="a"), manifest(name="b"))
    world.crash_before = "Status"
    assert isinstance(world.run(), Conflict)
    assert len(pieces(world)) == 2
    assert set(before) < set(pieces(world))
    assert world.component == component

    world.crash_before = ""
    assert world.run() is None

    assert world.phases == {"a": "Ready", "b": "Ready"}
    assert list(names_in(world.status)) == pieces(world)


def test_crash_before_config_maps_are_deleted_leaves_them_to_the_next_pass(world: World):
    world.desires(manifest(name="a"))
    world.run()
    left = dict(world.objects)
    world.desires(manifest(name="a"), manifest(name="b"))
    world.run()
    world.objects |= {key: obj for key, obj in left.items() if key not in world.objects}
    assert len(pieces(world)) == 2

    world.run()

    assert list(names_in(world.status)) == pieces(world)


def test_config_map_that_a_crashed_pass_created_is_used(world: World):
    world.desires(manifest("Service", "a"))
    world.crash_before = "Status"
    world.run()
    [created] = pieces(world)
    world.crash_before, world.subscribed = "", None

    assert world.run() is None

    assert world.status["state"] == "Ready"
    assert list(names_in(world.status)) == pieces(world)
    assert created not in pieces(world)


def test_nothing_is_touched_if_a_part_of_the_inventory_is_gone(world: World):
    world.desires(manifest(name="a"))
    world.run()
    [lost] = pieces(world)
    world.objects = without(world.objects, lost)
    world.desires()

    failure = world.run()

    assert isinstance(failure, InvalidParent)
    assert f"ConfigMap {lost}, which has a part of the inventory, is gone" in str(failure)
    assert [key.name for key in world.objects] == ["a"]
    assert names_in(world.status) == (lost,)


def test_changed_config_map_counts_as_gone(world: World):
    world.desires(manifest(name="a"))
    world.run()
    [changed] = pieces(world)
    world.edit(changed, data={"inventory": "[]"})

    assert isinstance(world.run(), InvalidParent)

    assert world.written == []


def test_deleted_component_deletes_what_its_config_maps_list(world: World):
    world.desires(manifest(name="a"), manifest("Service", "b"))
    world.run()
    world.delete()
    world.run()
    world.run()

    assert world.component is None
    assert all("-inventory-" in key.name for key in world.objects)


def test_suspended_component_keeps_its_inventory():
    world = World(controller=a_component_controller(inventoryStorage="ConfigMap", parentFields={"suspend": ".spec.suspend"}))
    world.desires(manifest(name="a"))
    world.run()
    assert world.component is not None
    world.component = {**world.component, "spec": {"suspend": True}}

    world.run()

    assert (world.status["state"], world.phases) == ("Pending", {"a": "Ready"})


def test_kind_that_drops_the_names_of_config_maps_is_told(world: World):
    world.drops_inventory = True
    world.desires(manifest(name="a"))

    failure = world.run()

    assert "does not store status.inventoryConfigMaps" in str(failure)
    assert ObjectKey("", "ConfigMap", "default", "a") not in world.objects


def test_plan_reads_the_inventory_from_config_maps(world: World):
    world.desires(manifest(name="a"))
    world.run()
    world.desires()

    assert world.previewed() == ["deletion wave 0: delete a"]
