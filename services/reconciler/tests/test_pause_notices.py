"""Paused parents: no hook is called, no child is written, and the pause is announced once."""

import pytest
from builders import CONFIG_MAPS, THINGS, a_controller, a_decorator, a_parent, config_map, stored
from fake_api import refused
from syncing import Sync

from metaloop.common.api import PAUSED_ANNOTATION
from metaloop.common.errors import Refused
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import Invalid
from metaloop.common.objects import unstructured


def paused(obj: JsonObject) -> JsonObject:
    return {**obj, "metadata": {**unstructured.metadata(obj), "annotations": {PAUSED_ANNOTATION: "true"}}}


def resumed(sync: Sync) -> None:
    """Remove the annotation."""
    metadata = {key: value for key, value in unstructured.metadata(sync.parent).items() if key != "annotations"}
    sync.api.put(THINGS, {**sync.parent, "metadata": metadata})


def conditions(sync: Sync) -> list[tuple[str, str]]:
    found = unstructured.child_object(sync.parent, "status").get("conditions", [])
    assert isinstance(found, list)
    return [(str(each["type"]), str(each["status"])) for each in found if isinstance(each, dict)]


async def test_paused_parent_has_its_hook_not_asked_and_its_children_not_written():
    sync = Sync(lambda _: {"children": [config_map("b")]}, parent=paused(a_parent()))
    sync.api.put(CONFIG_MAPS, stored(config_map("a"), owner=a_parent()))

    report = await sync.run()

    assert report.result == "done"
    assert sync.hooks.requests == []
    assert set(sync.children) == {"a"}


async def test_pause_is_said_in_the_status_beside_what_stands_there_and_in_one_event():
    status: JsonObject = {"replicas": 3, "conditions": [{"type": "Ready", "status": "True"}]}
    sync = Sync(lambda _: {}, parent=paused(a_parent(status=status)))

    await sync.run()
    await sync.run()

    assert conditions(sync) == [("Ready", "True"), ("Paused", "True")]
    assert unstructured.child_object(sync.parent, "status")["replicas"] == 3
    assert [reason for _, reason, _ in sync.recorder.told] == ["Paused"]
    assert dict(sync.api.requests) == {}


async def test_condition_of_a_pause_goes_with_the_first_status_after_it():
    sync = Sync(lambda _: {"status": {"phase": "Well"}, "children": [config_map("a")]}, parent=paused(a_parent()))
    await sync.run()

    resumed(sync)
    await sync.run()

    assert unstructured.child_object(sync.parent, "status") == {"phase": "Well", "observedGeneration": 3}
    assert set(sync.children) == {"a"}


async def test_second_pause_is_told_again():
    sync = Sync(lambda _: {}, parent=paused(a_parent()))
    await sync.run()
    resumed(sync)
    await sync.run()

    sync.api.put(THINGS, paused(sync.parent))
    await sync.run()

    assert [reason for _, reason, _ in sync.recorder.told] == ["Paused", "Paused"]


async def test_paused_controller_says_nothing_on_its_parents():
    """The controller says so. A thousand parents would need a thousand writes."""
    sync = Sync(lambda _: {"children": [config_map("a")]}, controller=paused(a_controller()))

    await sync.run()

    assert (sync.hooks.requests, sync.recorder.told, dict(sync.api.requests)) == ([], [], {})


async def test_status_that_refuses_conditions_is_left_alone_from_then_on():
    sync = Sync(lambda _: {}, parent=paused(a_parent()))
    sync.api.failing["replace status", "parent"] = Invalid(refused(422, "Invalid"))

    reports = [await sync.run(), await sync.run()]

    assert [report.result for report in reports] == ["done", "done"]
    assert dict(sync.api.requests) == {}
    assert [reason for _, reason, _ in sync.recorder.told] == ["Paused"]


async def test_status_that_can_not_be_written_for_now_says_it_later():
    """An admission webhook that is unavailable does not show whether conditions are supported."""
    sync = Sync(lambda _: {}, parent=paused(a_parent()))
    sync.api.failing["replace status", "parent"] = Refused(refused(500, "InternalError"))
    report = await sync.run()
    sync.api.failing.clear()

    await sync.run()

    assert report.result == "retry"
    assert conditions(sync) == [("Paused", "True")]


async def test_decorated_object_that_is_paused_keeps_its_status():
    """The status belongs to another controller, so there is only an event."""
    sync = Sync(lambda _: {"attachments": [config_map("a")]}, controller=a_decorator(), parent=paused(a_parent(status={"conditions": []})))

    await sync.run()
    await sync.run()

    assert sync.hooks.requests == []
    assert conditions(sync) == []
    assert [reason for _, reason, _ in sync.recorder.told] == ["Paused"]


@pytest.mark.parametrize("deleting", [False, True])
async def test_paused_parent_neither_gets_nor_loses_a_finalizer(deleting: bool):
    controller = a_controller()
    hooks = unstructured.child_object(unstructured.child_object(controller, "spec"), "hooks")
    hooks["finalize"] = hooks["sync"]
    parent = paused(a_parent(deleting=deleting))
    unstructured.metadata(parent)["finalizers"] = ["metacontroller.io/compositecontroller-things"] if deleting else []
    sync = Sync(lambda _: {"finalized": True}, controller=controller, parent=parent)

    await sync.run()

    assert unstructured.finalizers(sync.parent) == unstructured.finalizers(parent)
    assert sync.hooks.requests == []
