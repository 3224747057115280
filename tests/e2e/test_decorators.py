"""Decorators: which objects are decorated, what is attached to them, and who gets along with whom."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed import builtin
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, DECORATORS, NAMESPACES
from metaloop.devkit.testbed.decorator import Decorator, attaching, attachment
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.manifests import child_rule, parent
from metaloop.devkit.testbed.story import STORY_LABEL, THINGS, Story, three_config_maps

_GC_SECONDS = 90


@pytest.fixture
def decorator(story: Story) -> Decorator:
    return Decorator(story=story, name=story.name)


async def test_objects_of_many_kinds_get_their_attachments(story: Story, decorator: Decorator) -> None:
    """Built-in and custom, namespaced and cluster-scoped, all by one controller."""
    targets = (builtin.PODS, builtin.SERVICES, builtin.STATEFUL_SETS, NAMESPACES, builtin.NODES, THINGS)
    await decorator.install(attaching("a"), *targets)
    labels, name = {STORY_LABEL: story.name}, f"{story.name}-x"
    home = {"home": story.name}

    for target, obj in (
        (builtin.PODS, builtin.pod("x", labels=labels)),
        (builtin.SERVICES, builtin.service("x", labels=labels)),
        (builtin.STATEFUL_SETS, builtin.stateful_set("x", labels=labels)),
        (NAMESPACES, builtin.named(NAMESPACES, name, labels=labels, annotations=home)),
        (builtin.NODES, builtin.named(builtin.NODES, name, labels=labels, annotations=home)),
        (THINGS, parent(THINGS, "x", labels=labels)),
    ):
        await story.cluster.create(target, obj, namespace=story.name)

    wanted = ["pod-x-a", "service-x-a", "statefulset-x-a", "thing-x-a", f"namespace-{name}-a", f"node-{name}-a"]
    await eventually(lambda: decorator.attached(dict.fromkeys(wanted, "")))
    for found in (await decorator.attachments()).values():
        owner = controller_ref(found)
        assert owner is not None
        assert f"{owner.kind.lower()}-{owner.name}-a" == unstructured.name(found)


async def test_attachments_go_with_their_object(story: Story, decorator: Decorator) -> None:
    await decorator.install(attaching("a", "b"), builtin.PODS)
    await _pod(story, "x")
    await eventually(lambda: decorator.attached({"pod-x-a": "", "pod-x-b": ""}))

    await story.cluster.request("DELETE", builtin.PODS.path(story.name, "x"), params={"gracePeriodSeconds": "0"})

    await eventually(lambda: decorator.attached({}), within_seconds=_GC_SECONDS)


async def test_attachment_that_is_changed_or_deleted_is_mended(story: Story, decorator: Decorator) -> None:
    await decorator.install(attaching("a", "b"), builtin.PODS)
    await _pod(story, "x", text="right")
    await eventually(lambda: decorator.attached({"pod-x-a": "right", "pod-x-b": "right"}))

    await story.cluster.patch(CONFIG_MAPS, story.name, "pod-x-a", {"data": {"text": "wrong"}})
    await story.cluster.delete(CONFIG_MAPS, story.name, "pod-x-b")

    await eventually(lambda: decorator.attached({"pod-x-a": "right", "pod-x-b": "right"}))
    await eventually(lambda: _is_shown(decorator, {"pod-x-a", "pod-x-b"}))


async def test_object_is_decorated_once_its_labels_and_annotations_are_selected(story: Story, decorator: Decorator) -> None:
    rule = decorator.rule(
        builtin.PODS,
        annotationSelector={"matchAnnotations": {"wanted": "yes"}, "matchExpressions": [{"key": "text", "operator": "Exists"}]},
    )
    await decorator.install(attaching("a"), resources=[rule])
    await story.cluster.create(builtin.PODS, builtin.pod("x"), namespace=story.name)
    await eventually(lambda: story.normal_event(of=story.name, reason="Started"))

    await _annotate(story, "x", wanted="yes", text="hello")
    await steadily(decorator.no_more_than(0), for_seconds=0.5)
    await story.cluster.patch(builtin.PODS, story.name, "x", {"metadata": {"labels": {STORY_LABEL: story.name}}})

    await eventually(lambda: decorator.attached({"pod-x-a": "hello"}))


@pytest.mark.parametrize("edit", [{"labels": {STORY_LABEL: None}}, {"annotations": {"text": None}}], ids=["label", "annotation"])
async def test_object_that_is_no_longer_selected_is_left_alone(story: Story, decorator: Decorator, edit: JsonObject) -> None:
    rule = decorator.rule(builtin.PODS, annotationSelector={"matchExpressions": [{"key": "text", "operator": "Exists"}]})
    await decorator.install(attaching("a"), resources=[rule])
    await _pod(story, "x", text="before")
    await eventually(lambda: decorator.attached({"pod-x-a": "before"}))
    await eventually(lambda: decorator.rested(builtin.PODS, "x"))
    calls = len(decorator.calls())

    await story.cluster.patch(builtin.PODS, story.name, "x", {"metadata": edit})
    await story.cluster.patch(CONFIG_MAPS, story.name, "pod-x-a", {"data": {"text": "mine now"}})

    await steadily(decorator.no_more_than(calls))
    await decorator.attached({"pod-x-a": "mine now"})


async def test_two_decorators_of_one_object_leave_each_others_attachments_alone(story: Story, decorator: Decorator) -> None:
    other = Decorator(story=story, name=f"{story.name}-other")
    await decorator.install(attaching("a", labels={"one": "1"}), builtin.PODS)
    await other.install(attaching("b", labels={"two": "2"}), builtin.PODS)

    await _pod(story, "x", text="t")

    await eventually(lambda: decorator.attached({"pod-x-a": "t"}))
    await eventually(lambda: other.attached({"pod-x-b": "t"}))
    await eventually(lambda: _has_labels(story, "x", one="1", two="2"))
    for each in (decorator, other):
        await eventually(lambda each=each: each.rested(builtin.PODS, "x"))
    await _nothing_is_written_for_a_change_of(story, "x", by=[decorator, other])


async def test_decorator_and_composite_share_a_parent(story: Story, decorator: Decorator) -> None:
    """Both own children of the same kind through the same owner; neither takes, counts or deletes the other's."""
    await story.controller()
    await decorator.install(attaching("a", annotations={"seen": "yes"}), THINGS)

    await story.parent("p", text="t")

    await eventually(lambda: decorator.attached({"thing-p-a": ""}))
    await eventually(lambda: _is_seen(story, "p"))
    await eventually(lambda: story.rested("p"))
    await eventually(lambda: decorator.rested(THINGS, "p"))
    assert set(await story.config_maps(of="p")) == {"p-0", "p-1", "p-2"}
    mark = story.lab.audit.mark()
    await story.relabel("p", {"again": "1"})
    await eventually(lambda: story.rested("p"))
    await eventually(lambda: decorator.rested(THINGS, "p"))
    assert await story.writes_since(mark) == []


async def test_name_that_the_composite_uses_is_refused_to_the_decorator(story: Story, decorator: Decorator) -> None:
    def grabbing(request: JsonObject) -> JsonObject:
        wanted = attachment(request, "0")
        unstructured.metadata(wanted)["name"] = "p-0"
        return {"attachments": [wanted]}

    await story.controller(three_config_maps)
    await story.parent("p", text="t")
    await eventually(lambda: story.settled("p"))

    await decorator.install(grabbing, THINGS)

    await eventually(lambda: story.warning(of="p", containing="p-0"))
    assert await story.texts(of="p") == {"p-0": "t", "p-1": "t", "p-2": "t"}


@pytest.mark.parametrize("method", ["InPlace", "RollingInPlace", "Recreate", "RollingRecreate", "OnDelete", ""])
async def test_attachment_that_differs_is_treated_by_its_update_method(story: Story, decorator: Decorator, method: str) -> None:
    await decorator.install(attaching("a"), builtin.PODS, attachments=[child_rule(method=method)])
    await _pod(story, "x", text="before")
    await eventually(lambda: decorator.attached({"pod-x-a": "before"}))
    await eventually(lambda: _is_shown(decorator, {"pod-x-a"}))
    before = unstructured.uid((await decorator.attachments())["pod-x-a"])

    await _annotate(story, "x", text="after")

    stays = method in {"OnDelete", ""}
    await eventually(lambda: _is_asked_of(decorator, text="after"))
    await eventually(lambda: decorator.attached({"pod-x-a": "before" if stays else "after"}))
    after = unstructured.uid((await decorator.attachments())["pod-x-a"])
    assert (after == before) == ("Recreate" not in method)
    if stays:
        await story.cluster.delete(CONFIG_MAPS, story.name, "pod-x-a")
        await eventually(lambda: decorator.attached({"pod-x-a": "after"}))


async def test_status_alone_is_no_reason_to_ask_where_it_is_ignored(story: Story, decorator: Decorator) -> None:
    await decorator.install(attaching("a"), resources=[decorator.rule(builtin.PODS, ignoreStatusChanges=True)])
    await _pod(story, "x", text="t")
    await eventually(lambda: decorator.attached({"pod-x-a": "t"}))
    await eventually(lambda: decorator.rested(builtin.PODS, "x"))
    calls = len(decorator.calls())

    await story.cluster.patch(builtin.PODS, story.name, "x", {"status": {"message": "running"}}, subresource="status")

    await steadily(decorator.no_more_than(calls))


async def test_at_rest_nothing_is_written_however_often_it_is_asked(story: Story, decorator: Decorator) -> None:
    await decorator.install(attaching("a", labels={"l": "1"}, annotations={"n": "2"}), builtin.PODS, resyncPeriodSeconds=1)
    await _pod(story, "x")
    await eventually(lambda: _is_shown(decorator, {"pod-x-a"}))
    await eventually(lambda: _has_labels(story, "x", l="1"))
    await eventually(lambda: decorator.rested(builtin.PODS, "x"))
    mark, calls = story.lab.audit.mark(), len(decorator.calls())

    await eventually(lambda: decorator.called(calls + 3))

    assert await story.writes_since(mark) == []


async def test_stopped_decorator_asks_nothing_any_more(story: Story, decorator: Decorator) -> None:
    await decorator.install(attaching("a"), builtin.PODS)
    await _pod(story, "x", text="t")
    await eventually(lambda: decorator.attached({"pod-x-a": "t"}))
    await eventually(lambda: decorator.rested(builtin.PODS, "x"))

    await story.cluster.delete(DECORATORS, "", decorator.name)
    await eventually(lambda: story.normal_event(of=story.name, reason="Stopped"))
    calls = len(decorator.calls())
    await story.cluster.delete(CONFIG_MAPS, story.name, "pod-x-a")

    await steadily(decorator.no_more_than(calls))


async def _pod(story: Story, name: str, **annotations: str) -> None:
    obj = builtin.pod(name, labels={STORY_LABEL: story.name}, annotations=annotations)
    await story.cluster.create(builtin.PODS, obj, namespace=story.name)


async def _annotate(story: Story, name: str, target: ResourceInfo = builtin.PODS, **annotations: str) -> None:
    await story.cluster.patch(target, story.name, name, {"metadata": {"annotations": {**annotations}}})


async def _is_shown(decorator: Decorator, names: set[str]) -> None:
    """Raises AssertionError until the hook's last call showed these attachments."""
    calls = decorator.calls()
    groups = unstructured.child_object(calls[-1].request, "attachments") if calls else {}
    shown = set(unstructured.child_object(groups, "ConfigMap.v1"))
    expect(shown == names, f"{decorator.name} was shown {shown}, not yet {names}")


async def _is_asked_of(decorator: Decorator, *, text: str) -> None:
    calls = decorator.calls()
    expect(calls and unstructured.annotations(calls[-1].parent).get("text") == text, "the hook has not seen the change yet")


async def _nothing_is_written_for_a_change_of(story: Story, name: str, *, by: list[Decorator]) -> None:
    """A change that makes every hook be asked again, with the same answer."""
    mark = story.lab.audit.mark()
    await _annotate(story, name, poke="1")
    for each in by:
        await eventually(lambda each=each: each.rested(builtin.PODS, name))
    assert await story.writes_since(mark) == []


async def _has_labels(story: Story, name: str, **labels: str) -> None:
    found = unstructured.labels(await story.cluster.get(builtin.PODS, story.name, name))
    expect(found.items() >= labels.items(), f"the labels of {name} are {found}")


async def _is_seen(story: Story, name: str) -> None:
    found = unstructured.annotations(await story.cluster.get(THINGS, story.name, name))
    expect(found.get("seen") == "yes", f"the annotations of {name} are {found}")
