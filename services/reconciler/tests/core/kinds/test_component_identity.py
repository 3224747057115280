"""On whose behalf the objects of a component are read and written, and where they go."""

import pytest
from component_world import World, a_component_controller
from components import crd, manifest

from metaloop.common.errors import InvalidParent
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.effects import describe
from metaloop.reconciler.core.steps import FindForeign, ReadObjects, WriteChildren

USER = "system:serviceaccount:default:deployer"


@pytest.fixture
def world() -> World:
    return World(controller=a_component_controller(defaultServiceAccount="deployer", inventoryStorage="ConfigMap"))


def users(world: World) -> dict[str, set[str]]:
    """The users on whose behalf the last pass asked for each thing."""
    found: dict[str, set[str]] = {}
    for step in world.steps:
        match step:
            case WriteChildren(_, plan, _, user):
                for action in plan:
                    what = "inventory" if "-inventory-" in describe(action) else describe(action).split()[0]
                    found.setdefault(what, set()).add(user)
            case ReadObjects(addresses, user):
                what = "read inventory" if "-inventory-" in addresses[0].name else "read"
                found.setdefault(what, set()).add(user)
            case FindForeign(acting_as=user):
                found.setdefault("find", set()).add(user)
            case _:
                pass
    return found


def test_objects_are_read_and_written_as_the_user_and_the_inventory_as_ourselves(world: World):
    world.desires(manifest(name="a", namespace="elsewhere"))

    world.run()

    assert users(world) == {"create": {USER}, "read": {USER}, "inventory": {""}}


def test_deletion_and_its_gate_are_those_of_the_user(world: World):
    world.desires(crd())
    world.run()
    world.delete()

    world.run()

    assert users(world) == {"find": {USER}, "delete": {USER}, "inventory": {""}}


def test_redundant_type_is_looked_for_and_deleted_as_the_user(world: World):
    world.desires(crd())
    world.run()
    world.edit(
        "widgets.example.com", status={"conditions": [{"type": each, "status": "True"} for each in ("Established", "NamesAccepted")]}
    )
    world.desires()

    world.run()

    assert users(world) == {"find": {USER}, "delete": {USER}, "inventory": {""}}


def test_plan_reads_as_the_user(world: World):
    world.desires(manifest(name="a"))

    world.preview()

    assert users(world) == {"read": {USER}}


def test_nobody_acts_as_anybody_else_without_being_told():
    world = World()
    world.desires(manifest(name="a"))

    world.run()

    assert users(world) == {"create": {""}, "read": {""}}


# -- placement ---------------------------------------------------------------------------------------------------------


def placed(namespace: str, world: World) -> World:
    """The same world, whose component now names this namespace."""
    assert world.component is not None
    spec: JsonObject = {"namespace": namespace}
    world.component = {**world.component, "spec": spec}
    return world


@pytest.fixture
def movable() -> World:
    return World(controller=a_component_controller(parentFields={"namespace": ".spec.namespace"}))


def test_namespace_can_not_change_while_objects_are_deployed(movable: World):
    movable.desires(manifest(name="a"))
    assert placed("blue", movable).run() is None
    assert movable.status["placement"] == {"namespace": "blue"}

    failure = placed("red", movable).run()

    assert isinstance(failure, InvalidParent)
    assert str(failure) == "spec.namespace: can't change from blue to red while objects are deployed"
    assert movable.written == []
    assert movable.status["placement"] == {"namespace": "blue"}


def test_namespace_may_change_once_nothing_is_deployed(movable: World):
    movable.desires(manifest(name="a"))
    placed("blue", movable).run()
    movable.desires()
    movable.run()
    movable.run()
    assert "placement" not in movable.status

    movable.desires(manifest(name="a"))

    assert placed("red", movable).run() is None
    assert [unstructured.namespace(obj) for obj in movable.objects.values() if unstructured.name(obj) == "a"] == ["red"]
