"""Decorators that can't be served, or whose hooks misbehave: it is said on them or on the object, nothing is deleted,
and others go on.
"""

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed import builtin
from metaloop.devkit.testbed.cluster import DECORATORS
from metaloop.devkit.testbed.decorator import Decorator, attaching
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.story import STORY_LABEL, Story
from metaloop.devkit.testbed.webhook import Behaviour, Reply

_ABSENT: JsonObject = {"apiVersion": "absent.example.com/v1", "resource": "absents"}
_NEAR: JsonObject = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}
_PODS: JsonObject = {"apiVersion": "v1", "resource": "pods"}

# What is wrong with a spec, and the word that the Warning has to have in it.
BAD_SPECS: dict[str, tuple[JsonObject, str]] = {
    "no resources": ({"resources": []}, "resources"),
    "no hooks": ({"hooks": {}}, "hooks"),
    "label selector does not parse": ({"resources": [{**_PODS, "labelSelector": _NEAR}]}, "labelSelector"),
    "annotation selector does not parse": ({"resources": [{**_PODS, "annotationSelector": _NEAR}]}, "annotationSelector"),
    "resource is there twice": ({"resources": [{**_PODS, "labelSelector": {"matchLabels": {"a": "b"}}}, _PODS]}, "resources[1]"),
    "target does not exist": ({"resources": [_ABSENT]}, "absents"),
    "attachment does not exist": ({"attachments": [_ABSENT]}, "absents"),
}


def _body(body: bytes, *, status: int = 200) -> Behaviour:
    return lambda _: Reply(body=body, status=status, headers={"Content-Type": "application/json"})


BAD_ANSWERS: dict[str, tuple[Behaviour, str]] = {
    "error 500": (_body(b"sorry", status=500), "500"),
    "no JSON": (_body(b"<html>"), "JSON"),
    "null attachment": (lambda _: {"attachments": [None]}, "attachments[0]"),
    "label that is a number": (lambda _: {"attachments": [], "labels": {"a": 1}}, "labels"),
    "annotations that are a list": (lambda _: {"attachments": [], "annotations": ["a"]}, "annotations"),
    "status that is text": (lambda _: {"attachments": [], "status": "good"}, "status"),
    "attachment that is not declared": (lambda _: {"attachments": [builtin.service("s")]}, "Service"),
    "attachment elsewhere": (lambda _: {"attachments": [config_map("a", namespace="default")]}, "namespace"),
    "label that is none": (lambda _: {"attachments": [], "labels": {"not a label!": "x"}}, "not a label!"),
}


@pytest.fixture
def decorator(story: Story) -> Decorator:
    return Decorator(story=story, name=story.name)


@pytest.mark.parametrize("case", BAD_SPECS)
async def test_bad_decorator_is_reported_and_starts_once_it_is_mended(story: Story, decorator: Decorator, case: str) -> None:
    bad, word = BAD_SPECS[case]
    good = unstructured.child_object(decorator.manifest(attaching("a"), builtin.PODS), "spec")
    await story.cluster.create(builtin.PODS, builtin.pod("x", labels={STORY_LABEL: story.name}), namespace=story.name)
    manifest = decorator.manifest(attaching("a"), builtin.PODS)
    await story.cluster.create(DECORATORS, {**manifest, "spec": {**good, **bad}})
    await eventually(lambda: story.warning(of=story.name, containing=word, reason="CreateError"))

    await story.cluster.patch(DECORATORS, "", decorator.name, {"spec": {**good}})

    await eventually(lambda: decorator.attached({"pod-x-a": ""}))


async def test_condition_says_what_keeps_a_decorator_from_its_work(story: Story, decorator: Decorator) -> None:
    spec = unstructured.child_object(decorator.manifest(attaching("a"), builtin.PODS), "spec")
    manifest = decorator.manifest(attaching("a"), builtin.PODS)

    await story.cluster.create(DECORATORS, {**manifest, "spec": {**spec, "attachments": [_ABSENT]}})
    await eventually(lambda: story.ready(of=DECORATORS, status="False", reason="WaitingForCRD"), within_seconds=40)
    await story.cluster.patch(DECORATORS, "", decorator.name, {"spec": {"attachments": spec["attachments"], "resources": []}})
    await eventually(lambda: story.ready(of=DECORATORS, status="False", reason="InvalidSpec"), within_seconds=40)
    await story.cluster.patch(DECORATORS, "", decorator.name, {"spec": spec})
    await eventually(lambda: story.ready(of=DECORATORS, status="True", reason="Synced"), within_seconds=40)


async def test_bad_edit_leaves_the_decorator_running_as_it_was(story: Story, decorator: Decorator) -> None:
    await decorator.install(attaching("a"), builtin.PODS)
    await eventually(lambda: story.normal_event(of=story.name, reason="Started"))

    await story.cluster.patch(DECORATORS, "", decorator.name, {"spec": {"attachments": [_ABSENT]}})
    await eventually(lambda: story.warning(of=story.name, containing="absents", reason="CreateError"))
    await story.cluster.create(builtin.PODS, builtin.pod("x", labels={STORY_LABEL: story.name}), namespace=story.name)

    await eventually(lambda: decorator.attached({"pod-x-a": ""}))


@pytest.mark.parametrize("case", BAD_ANSWERS)
async def test_bad_answer_is_reported_on_the_object_and_deletes_nothing(story: Story, decorator: Decorator, case: str) -> None:
    behaviour, word = BAD_ANSWERS[case]
    await decorator.install(attaching("a"), builtin.PODS)
    await story.cluster.create(builtin.PODS, builtin.pod("x", labels={STORY_LABEL: story.name}), namespace=story.name)
    await eventually(lambda: decorator.attached({"pod-x-a": ""}))

    decorator.hook("sync", behaviour)
    await story.cluster.patch(builtin.PODS, story.name, "x", {"metadata": {"annotations": {"text": "poked"}}})

    await eventually(lambda: story.warning(of="x", containing=word))
    if "label" not in case:
        await decorator.attached({"pod-x-a": ""})
    decorator.hook("sync", attaching("a"))
    await eventually(lambda: decorator.attached({"pod-x-a": "poked"}), within_seconds=40)
