"""What a plan shows of a component. Nothing is written for it."""

import pytest
from component_world import World, a_component_controller
from components import crd, manifest, widget

from metaloop.common.errors import InvalidAnswer
from metaloop.reconciler.core.steps import CallHook, DescribeCluster, FindForeign, ReadObjects, Step, SubscribeRelated

READS: tuple[type[Step], ...] = (CallHook, DescribeCluster, FindForeign, ReadObjects, SubscribeRelated)


@pytest.fixture
def world() -> World:
    return World()


def test_new_component_is_shown_with_all_of_its_waves(world: World):
    world.desires(manifest("Deployment", "web", api_version="apps/v1"), manifest(name="late", apply_order="1"))

    assert world.previewed() == ["wave 0: create web", "wave 1: create late"]


def test_plan_asks_and_does_nothing_else(world: World):
    world.desires(crd(), widget())
    world.run()
    world.desires(manifest(name="a"))

    world.preview()

    assert all(isinstance(step, READS) for step in world.steps)


def test_objects_are_kept_changed_and_deleted(world: World):
    world.desires(manifest(name="kept"), manifest(name="changed"), manifest(name="gone"), manifest(name="left", delete_policy="orphan"))
    world.run()
    world.desires(manifest(name="kept"), {**manifest(name="changed"), "data": {"k": "v"}}, manifest(name="new"))

    assert world.previewed() == [
        "wave 0: keep kept",
        "wave 0: update changed",
        "wave 0: create new",
        "deletion wave 0: delete gone",
        "deletion wave 0: orphan left",
    ]


def test_type_that_others_use_is_blocked(world: World):
    world.desires(crd())
    world.run()
    world.desires()
    world.foreign = ["Widget team/x"]

    [wave] = world.preview().waves

    assert [(each.verb, each.reason) for each in wave.objects] == [("block", "needed by Widget team/x")]


def test_deleted_component_shows_what_blocks_it_and_what_would_go(world: World):
    world.desires(crd(), manifest(name="a"))
    world.run()
    world.delete()
    world.foreign = ["Widget team/x"]

    assert world.preview().obstacles == ("deletion is blocked by Widget team/x",)
    assert world.previewed() == ["deletion wave 0: block widgets.example.com", "deletion wave 0: delete a"]


def test_suspended_component_shows_what_would_happen_otherwise():
    world = World(controller=a_component_controller(parentFields={"suspend": ".spec.suspend"}))
    assert world.component is not None
    world.component = {**world.component, "spec": {"suspend": True}}
    world.desires(manifest(name="a"))

    assert world.preview().obstacles == ("the component is suspended",)
    assert world.previewed() == ["wave 0: create a"]


def test_invalid_answer_ends_the_plan(world: World):
    world.desires(manifest(name="a", apply_order="x"))

    with pytest.raises(InvalidAnswer, match="apply-order"):
        world.preview()
