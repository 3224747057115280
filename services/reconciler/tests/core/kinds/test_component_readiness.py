"""Passes over a component whose controller has a hook that says how objects of certain kinds are."""

import pytest
from component_world import World, a_component_controller
from components import crd, manifest, widget

from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JsonObject, JsonValue
from metaloop.reconciler.core.component.conditions import Readiness
from metaloop.reconciler.core.kinds.component_readiness import readiness_in

STATUS: JsonObject = {"webhook": {"url": "http://hook.example/"}, "kinds": [{"group": "", "kind": "ConfigMap"}]}
LATER = manifest("Service", "later", apply_order="1")


def says(*statuses: JsonValue) -> JsonObject:
    """An answer of the hook."""
    return {"statuses": [*statuses]}


@pytest.fixture
def world() -> World:
    world = World(controller=a_component_controller(hooks={"status": STATUS}))
    world.desires(manifest(name="a"), manifest("Service", "b"), LATER)
    return world


def test_hook_decides_about_objects_of_its_kinds(world: World):
    world.lifecycle["status"] = says({"status": "InProgress", "message": "2 of 3"})
    world.run()
    assert (world.status["state"], world.ready["message"]) == ("Processing", "Waiting for ConfigMap default/a: 2 of 3")
    assert world.phases == {"a": "Creating", "b": "Ready", "later": "ScheduledForApplication"}

    world.lifecycle["status"] = says({"status": "Current"})
    world.run()

    assert (world.status["state"], world.phases["a"]) == ("Ready", "Ready")


def test_hook_is_sent_the_objects_as_they_are(world: World):
    world.lifecycle["status"] = says({"status": "Current"})

    world.run()

    asked = world.requests["status"]
    objects = asked["objects"]
    assert isinstance(objects, list)
    assert [(each["kind"], "uid" in each["metadata"]) for each in objects] == [("ConfigMap", True)]  # type: ignore[index]
    assert sorted(asked) == ["controller", "objects", "parent"]


def test_object_that_failed_fails_the_component(world: World):
    world.lifecycle["status"] = says({"status": "Failed"})

    world.run()

    assert (world.ready["reason"], world.ready["message"]) == (
        "DependentFailed",
        "ConfigMap default/a: the status hook says Failed",
    )


def test_object_that_ceases_to_be_ready_keeps_its_phase(world: World):
    world.lifecycle["status"] = says({"status": "Current"})
    world.run()
    world.lifecycle["status"] = says({"status": "InProgress"})

    world.run()

    assert (world.phases["a"], world.status["state"]) == ("Ready", "Processing")


def test_invalid_answer_keeps_what_was_written(world: World):
    world.lifecycle["status"] = says()

    assert isinstance(world.run(), InvalidAnswer)

    assert [key.name for key in world.objects] == ["a"]
    assert world.ready["reason"] == "InvalidAnswer"


def test_hook_is_not_asked_where_there_is_nothing_to_ask_about(world: World):
    world.desires(manifest("Service", "b"), crd(), widget())

    world.run()

    assert "status" not in world.requests


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"{}", "statuses: must be a list of 1"),
        (b'{"statuses": [{}, {}]}', "statuses: must be a list of 1"),
        (b'{"statuses": [{}]}', r"statuses\[0\].status: must be one of Current, InProgress, Failed"),
        (b'{"statuses": ["Current"]}', r"statuses\[0\].status: must be one of"),
        (b'{"statuses": [{"status": "Terminating"}]}', r"statuses\[0\].status: must be one of"),
        (b'{"statuses": [{"status": "Current", "message": 1}]}', r"statuses\[0\].message: must be a string"),
    ],
)
def test_answer_has_one_status_for_each_object(answer: bytes, problem: str):
    with pytest.raises(InvalidAnswer, match=f"^{problem}"):
        readiness_in(answer, 1, is_strict=False)


def test_statuses_are_read_in_order():
    answer = b'{"statuses": [{"status": "Current"}, {"status": "Failed", "message": "x"}]}'

    assert readiness_in(answer, 2, is_strict=True) == [Readiness("Current"), Readiness("Failed", "x")]
