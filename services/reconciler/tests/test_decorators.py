"""Decorators in syncs: attachments, changes to the parent, and several controllers for one object."""

from dataclasses import replace

import pytest
from builders import CONFIG_MAPS, THINGS, a_controller, a_decorator, a_parent, config_map, stored
from fake_api import refused
from syncing import Sync

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import Forbidden
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref

ANNOTATION = "metacontroller.k8s.io/decorator-controller"
OURS = "metacontroller.io/decoratorcontroller-tags"


def decorates(**answer: object) -> Sync:
    """A cluster with a decorator whose hook always gives this answer."""
    return Sync(lambda _: answer, controller=a_decorator())  # type: ignore[return-value, arg-type]


async def test_attachment_is_owned_and_annotated():
    sync = decorates(attachments=[config_map("a", labels={})])

    await sync.run()

    owner = controller_ref(sync.children["a"])
    assert owner is not None
    assert (owner.uid, unstructured.annotations(sync.children["a"])[ANNOTATION]) == (unstructured.uid(sync.parent), "tags")


async def test_hook_is_shown_object_and_attachments():
    sync = decorates(attachments=[config_map("a")])
    await sync.run()

    await sync.run()

    assert set(sync.hooks.requests[1]) == {"controller", "object", "attachments", "related", "finalizing"}
    assert list(unstructured.child_object(unstructured.child_object(sync.hooks.requests[1], "attachments"), "ConfigMap.v1")) == ["a"]


async def test_changes_to_labels_and_annotations_are_one_write():
    sync = decorates(labels={"a": "1"}, annotations={"b": "2"})

    await sync.run()

    assert dict(sync.api.requests) == {"replace": 1}
    assert (unstructured.labels(sync.parent), unstructured.annotations(sync.parent)) == ({"a": "1"}, {"b": "2"})


async def test_at_rest_nothing_is_written():
    sync = decorates(labels={"a": "1", "gone": None}, status={"seen": True}, attachments=[config_map("a")])
    await sync.run()
    await sync.run()

    await sync.run()

    assert dict(sync.api.requests) == {}


async def test_null_status_is_left_as_it_is():
    sync = Sync(lambda _: {"status": None}, controller=a_decorator(), parent=a_parent(status={"theirs": 1}))

    await sync.run()

    assert (dict(sync.api.requests), sync.parent["status"]) == ({}, {"theirs": 1})


async def test_status_replaces_the_whole_and_says_no_generation():
    sync = Sync(lambda _: {"status": {"ours": 1}}, controller=a_decorator(), parent=a_parent(status={"theirs": 1}))

    await sync.run()

    assert sync.parent["status"] == {"ours": 1}


async def test_empty_status_is_a_status():
    """A hook sets it to show that it was called. Without it, the hook has not been called yet."""
    sync = decorates(status={})
    await sync.run()

    await sync.run()

    assert (sync.parent["status"], dict(sync.api.requests)) == ({}, {})


async def test_kind_without_status_subresource_has_its_status_written_with_the_rest():
    sync = decorates(status={"ours": 1}, labels={"a": "1"})
    granted = sync.observe()
    bare = replace(granted.observation, parent_resource=replace(THINGS, has_status=False))

    await sync.run(replace(granted, observation=bare))

    assert sync.api.requests["replace"] == 1


async def test_conflict_on_the_parent_skips_no_attachment():
    sync = decorates(labels={"a": "1"}, attachments=[config_map("a")])
    sync.api.failing["replace", "parent"] = Conflict("always")

    report = await sync.run()

    assert list(sync.children) == ["a"]
    assert (report.result, report.reason) == ("retry", "Conflict")


CHANGES: list[tuple[str, JsonObject]] = [("replace", {"labels": {"a": "1"}}), ("replace status", {"status": {"ours": 1}})]


@pytest.mark.parametrize(("verb", "answer"), CHANGES, ids=["the object", "its status"])
async def test_change_that_is_refused_is_told_after_the_attachments(verb: str, answer: JsonObject):
    sync = decorates(attachments=[config_map("a")], **answer)
    sync.api.failing[verb, "parent"] = Forbidden(refused(403, "Forbidden"))

    report = await sync.run()

    assert list(sync.children) == ["a"]
    assert (report.result, report.reason) == ("retry", "Forbidden")
    assert "write the parent's" in sync.recorder.told[0][2]


@pytest.mark.parametrize("answer", [answer for _, answer in CHANGES], ids=["the object", "its status"])
async def test_object_that_is_gone_meanwhile_needs_no_change(answer: JsonObject):
    sync = decorates(**answer)
    granted = sync.observe()
    sync.api.objects.clear()

    report = await sync.run(granted)

    assert (report.result, sync.recorder.told) == ("done", [])


async def test_failing_attachment_does_not_keep_the_parents_changes():
    sync = decorates(labels={"a": "1"}, attachments=[config_map("a")])
    sync.api.failing["create", "a"] = Forbidden(refused(403, "Forbidden"))

    report = await sync.run()

    assert unstructured.labels(sync.parent) == {"a": "1"}
    assert report.result == "retry"


async def test_what_another_decorator_attached_is_neither_shown_nor_deleted():
    sync = decorates()
    other = stored(config_map("other"), owner=a_parent(), metadata={"annotations": {ANNOTATION: "another"}})
    sync.api.put(CONFIG_MAPS, other)

    await sync.run()

    assert list(sync.children) == ["other"]
    assert sync.hooks.requests[0]["attachments"] == {"ConfigMap.v1": {}}


async def test_composite_leaves_its_parents_attachments_alone():
    sync = Sync(lambda _: {}, controller=a_controller())
    attached = stored(config_map("attached"), owner=a_parent(), metadata={"annotations": {ANNOTATION: "tags"}})
    sync.api.put(CONFIG_MAPS, attached)

    await sync.run()

    assert controller_ref(sync.children["attached"]) is not None
    assert sync.hooks.requests[0]["children"] == {"ConfigMap.v1": {}}


async def test_two_decorators_that_want_one_name_are_told():
    sync = decorates(attachments=[config_map("a")])
    sync.api.put(CONFIG_MAPS, stored(config_map("a"), owner=a_parent(), metadata={"annotations": {ANNOTATION: "another"}}))

    report = await sync.run()

    assert (report.result, report.reason) == ("retry", "NameTaken")
    assert "another" in report.message


async def test_orphan_of_the_same_name_is_never_adopted():
    sync = decorates(attachments=[config_map("a")])
    sync.api.put(CONFIG_MAPS, stored(config_map("a")))

    report = await sync.run()

    assert (report.reason, controller_ref(sync.children["a"])) == ("NameTaken", None)


def with_finalize_hook(label: str) -> JsonObject:
    """A decorator with a finalize hook, of Things with a label."""
    controller = a_decorator(rule={"labelSelector": {"matchLabels": {"on": label}}})
    hooks = unstructured.child_object(unstructured.child_object(controller, "spec"), "hooks")
    hooks["finalize"] = {"webhook": {"url": "http://hook.example/finalize"}}
    return controller


async def test_opted_out_parent_is_finalized_with_its_attachments_gone_and_in_one_write():
    parent = a_parent()
    unstructured.metadata(parent)["finalizers"] = [OURS]
    sync = Sync(lambda _: {"finalized": True, "labels": {"was": "on"}}, controller=with_finalize_hook("yes"), parent=parent)
    sync.api.put(CONFIG_MAPS, stored(config_map("a"), owner=a_parent(), metadata={"annotations": {ANNOTATION: "tags"}}))

    await sync.run()

    assert (sync.children, unstructured.finalizers(sync.parent), unstructured.labels(sync.parent)) == ({}, [], {"was": "on"})
    assert dict(sync.api.requests) == {"delete": 1, "replace": 1}


async def test_attachments_of_a_parent_that_is_finalized_are_the_garbage_collectors():
    parent = a_parent(deleting=True)
    unstructured.metadata(parent)["finalizers"] = [OURS]
    answer: JsonObject = {"finalized": True, "attachments": [config_map("b")]}
    sync = Sync(lambda _: answer, controller=with_finalize_hook("yes"), parent=parent)

    await sync.run()

    assert (sync.children, sync.api.all_of(THINGS)) == ({}, [])
