"""A decorator's hook may change the object's labels, annotations and status, in as few writes as needed."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed import builtin
from metaloop.devkit.testbed.decorator import Decorator, attaching
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import parent, parent_resource
from metaloop.devkit.testbed.story import STORY_LABEL, THINGS, Story

STATELESS = parent_resource("statelesses", has_status=False)
"""A kind whose status is no subresource."""


@pytest.fixture
def decorator(story: Story) -> Decorator:
    return Decorator(story=story, name=story.name)


async def test_labels_and_annotations_are_set_and_removed_and_others_stay(story: Story, decorator: Decorator) -> None:
    await story.cluster.create(
        builtin.PODS,
        builtin.pod("x", labels={STORY_LABEL: story.name, "old": "1", "kept": "1"}, annotations={"old": "1", "kept": "1"}),
        namespace=story.name,
    )
    mark = story.lab.audit.mark()

    await decorator.install(attaching(labels={"new": "2", "old": None, "never": None}, annotations={"new": "2", "old": None}), builtin.PODS)

    await eventually(lambda: _has(story, builtin.PODS, labels={STORY_LABEL: story.name, "new": "2", "kept": "1"}))
    await eventually(lambda: _has(story, builtin.PODS, annotations={"new": "2", "kept": "1"}))
    await eventually(lambda: decorator.rested(builtin.PODS, "x"))
    assert await story.writes_since(mark) == ["update pods/x"]


async def test_what_the_hook_no_longer_mentions_stays(story: Story, decorator: Decorator) -> None:
    await decorator.install(_labels_while_asked, builtin.PODS)
    await _create(story, builtin.PODS, annotations={"ask": "yes"})
    await eventually(lambda: _has(story, builtin.PODS, labels={STORY_LABEL: story.name, "asked": "yes"}))

    await story.cluster.patch(builtin.PODS, story.name, "x", {"metadata": {"annotations": {"ask": None}}})

    await eventually(lambda: _saw(decorator, annotations={}))
    await eventually(lambda: decorator.rested(builtin.PODS, "x"))
    await _has(story, builtin.PODS, labels={STORY_LABEL: story.name, "asked": "yes"})


async def test_status_is_replaced_in_one_write(story: Story, decorator: Decorator) -> None:
    await _create(story, THINGS)
    await story.cluster.patch(THINGS, story.name, "x", {"status": {"of": "another"}}, subresource="status")
    mark = story.lab.audit.mark()

    await decorator.install(attaching(status={"is": "ours"}), THINGS)

    await eventually(lambda: _status(story, THINGS, {"is": "ours"}))
    await eventually(lambda: decorator.rested(THINGS, "x"))
    assert await story.writes_since(mark) == ["update things/status/x"]


async def test_empty_status_is_a_status(story: Story, decorator: Decorator) -> None:
    await _create(story, THINGS)
    mark = story.lab.audit.mark()

    await decorator.install(attaching(status={}), THINGS)

    await eventually(lambda: _status(story, THINGS, {}))
    await eventually(lambda: decorator.rested(THINGS, "x"))
    assert await story.writes_since(mark) == ["update things/status/x"]


async def test_status_and_labels_are_a_write_each(story: Story, decorator: Decorator) -> None:
    await _create(story, THINGS)
    mark = story.lab.audit.mark()

    await decorator.install(attaching(status={"is": "ours"}, labels={"a": "1"}, annotations={"b": "2"}), THINGS)

    await eventually(lambda: _status(story, THINGS, {"is": "ours"}))
    await eventually(lambda: _has(story, THINGS, labels={STORY_LABEL: story.name, "a": "1"}, annotations={"b": "2"}))
    await eventually(lambda: decorator.rested(THINGS, "x"))
    assert await story.writes_since(mark) == ["update things/status/x", "update things/x"]


async def test_status_that_is_no_subresource_is_written_with_the_labels(story: Story, decorator: Decorator) -> None:
    await install_parent(story.cluster, STATELESS)
    await _create(story, STATELESS)
    mark = story.lab.audit.mark()

    await decorator.install(attaching(status={"is": "ours"}, labels={"a": "1"}), STATELESS)

    await eventually(lambda: _status(story, STATELESS, {"is": "ours"}))
    await _has(story, STATELESS, labels={STORY_LABEL: story.name, "a": "1"})
    await eventually(lambda: decorator.rested(STATELESS, "x"))
    assert await story.writes_since(mark) == ["update statelesses/x"]


@pytest.mark.parametrize("answer", [{}, {"status": None, "labels": None, "annotations": None}], ids=["unmentioned", "null"])
async def test_object_is_left_alone_where_the_hook_says_nothing_of_it(story: Story, decorator: Decorator, answer: JsonObject) -> None:
    await _create(story, THINGS)
    await story.cluster.patch(THINGS, story.name, "x", {"status": {"of": "another"}}, subresource="status")
    mark = story.lab.audit.mark()

    await decorator.install(attaching("a", **answer), THINGS)

    await eventually(lambda: decorator.attached({"thing-x-a": ""}))
    await eventually(lambda: decorator.rested(THINGS, "x"))
    assert await story.writes_since(mark) == ["create configmaps/thing-x-a"]
    await _status(story, THINGS, {"of": "another"})


async def test_conflict_at_the_object_does_not_put_off_its_attachments(story: Story, decorator: Decorator) -> None:
    """Somebody changes the object while the hook is being asked about it for the first time."""

    async def meddled_with(request: JsonObject) -> JsonObject:
        if len(decorator.calls()) == 1:
            await story.cluster.patch(THINGS, story.name, "x", {"metadata": {"annotations": {"meddled": "yes"}}})
        answer = attaching("a", labels={"l": "1"}, status={"is": "ours"})(request)
        assert isinstance(answer, dict)
        return answer

    await decorator.install(meddled_with, THINGS)
    await _create(story, THINGS)

    await eventually(lambda: decorator.called(2))
    shown = unstructured.child_object(decorator.calls()[1].request, "attachments")
    assert set(unstructured.child_object(shown, "ConfigMap.v1")) == {"thing-x-a"}
    await eventually(lambda: _status(story, THINGS, {"is": "ours"}))
    await eventually(lambda: _has(story, THINGS, labels={STORY_LABEL: story.name, "l": "1"}, annotations={"meddled": "yes"}))


async def test_label_by_which_the_hook_deselects_its_object_ends_its_service(story: Story, decorator: Decorator) -> None:
    """As one-time work does: it marks what is done, and is not asked again."""
    rule = decorator.rule(builtin.PODS, annotationSelector={"matchExpressions": [{"key": "done", "operator": "DoesNotExist"}]})
    await decorator.install(attaching("a", annotations={"done": "yes"}), resources=[rule])

    await _create(story, builtin.PODS)

    await eventually(lambda: _has(story, builtin.PODS, annotations={"done": "yes"}))
    await eventually(lambda: decorator.attached({"pod-x-a": ""}))
    await story.cluster.patch(builtin.PODS, story.name, "x", {"metadata": {"annotations": {"again": "yes"}}})
    await _create(story, builtin.PODS, name="y")
    await eventually(lambda: decorator.called(1, of="y"))
    assert len(decorator.calls(of="x")) == 1


def _labels_while_asked(request: JsonObject) -> JsonObject:
    asked = unstructured.annotations(unstructured.child_object(request, "object")).get("ask")
    return {"labels": {"asked": asked}} if asked else {}


async def _create(story: Story, target: ResourceInfo, *, name: str = "x", annotations: dict[str, str] | None = None) -> None:
    labels = {STORY_LABEL: story.name}
    obj = builtin.pod(name, labels=labels, annotations=annotations) if target is builtin.PODS else parent(target, name, labels=labels)
    await story.cluster.create(target, obj, namespace=story.name)


async def _has(
    story: Story, target: ResourceInfo, *, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None
) -> None:
    found = await story.cluster.get(target, story.name, "x")
    expect(labels is None or unstructured.labels(found) == labels, f"labels are {unstructured.labels(found)}")
    expect(annotations is None or unstructured.annotations(found) == annotations, f"annotations are {unstructured.annotations(found)}")


async def _saw(decorator: Decorator, *, annotations: dict[str, str]) -> None:
    calls = decorator.calls()
    expect(calls and unstructured.annotations(calls[-1].parent) == annotations, "the hook has not seen the change yet")


async def _status(story: Story, target: ResourceInfo, status: JsonObject) -> None:
    found = await story.cluster.get(target, story.name, "x")
    expect(found.get("status") == status, f"status is {found.get('status')}")
