"""Finalizers: what happens when a parent is deleted or no longer selected, and who cleans up (specification §15's
table).
"""

import pytest

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed import builtin
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, ApiRefused
from metaloop.devkit.testbed.decorator import Decorator, attaching, done_when_nothing_is_attached
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.story import STORY_LABEL, Story, teardown_in_order, three_config_maps
from metaloop.devkit.testbed.webhook import Behaviour, Reply

_GC_SECONDS = 90
_NOT_FOUND = 404
_OTHERS = "example.com/other"


def finalized(request: JsonObject) -> JsonObject:
    return {**three_config_maps(request), "finalized": True}


def unfinished(request: JsonObject) -> JsonObject:
    return {**three_config_maps(request), "finalized": False}


async def test_finalizer_is_there_before_the_hook_is_first_asked(story: Story) -> None:
    await _finalizing(story, finalized)

    await story.parent("p")

    await eventually(lambda: story.settled("p"))
    assert unstructured.finalizers(story.calls()[0].parent) == [_ours(story)]
    assert await _finalizers(story) == [_ours(story)]


async def test_deleted_parent_is_torn_down_in_order(story: Story) -> None:
    await _finalizing(story, teardown_in_order)
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    await story.cluster.delete(story.parents, story.name, "p")

    await eventually(lambda: _is_gone(story))
    shown = [set(_observed(call.request)) for call in story.calls("finalize")]
    assert [each for index, each in enumerate(shown) if index == 0 or each != shown[index - 1]] == [
        {"p-0", "p-1", "p-2"},
        {"p-0", "p-1"},
        {"p-0"},
        set(),
    ]
    assert all(call.request["finalizing"] is True for call in story.calls("finalize"))
    assert all(call.request["finalizing"] is False for call in story.calls())


async def test_children_of_a_parent_that_is_finalized_at_once_are_the_garbage_collectors(story: Story) -> None:
    await _finalizing(story, finalized)
    await story.parent("p")
    await eventually(lambda: story.rested("p"))
    mark = story.lab.audit.mark()

    await story.cluster.delete(story.parents, story.name, "p")

    await eventually(lambda: _is_gone(story))
    assert await story.writes_since(mark) == ["update things/p"]
    await eventually(lambda: _children(story, set()), within_seconds=_GC_SECONDS)


async def test_child_that_goes_while_its_parent_is_finalized_comes_back(story: Story) -> None:
    await _finalizing(story, unfinished)
    await story.parent("p")
    await eventually(lambda: story.settled("p"))
    await story.cluster.delete(story.parents, story.name, "p")
    await eventually(lambda: story.called(1, "finalize"))

    await story.cluster.delete(CONFIG_MAPS, story.name, "p-1")

    await eventually(lambda: story.called(2, "finalize"))
    await eventually(lambda: _children(story, {"p-0", "p-1", "p-2"}))
    await _finalize_at_last(story)


@pytest.mark.parametrize("propagation", ["Foreground", "Orphan"])
async def test_children_are_left_alone_while_the_garbage_collector_deals_with_them(story: Story, propagation: str) -> None:
    await _finalizing(story, unfinished)
    await story.parent("p")
    await eventually(lambda: story.rested("p"))
    mark = story.lab.audit.mark()

    await story.cluster.delete(story.parents, story.name, "p", propagation=propagation)

    left: set[str] = {"p-0", "p-1", "p-2"} if propagation == "Orphan" else set()
    await eventually(lambda: _finalizers_are(story, [_ours(story)]), within_seconds=_GC_SECONDS)
    # From then on the garbage collector is done, so that children are the hook's again.
    assert [write for write in await story.writes_since(mark) if "configmaps" in write and "delete" in write] == []
    await _finalize_at_last(story)
    if propagation == "Orphan":
        await _children(story, left)


async def test_parent_that_others_hold_is_finalized_again_but_its_children_left_alone(story: Story) -> None:
    await _finalizing(story, finalized)
    await story.parent("p")
    await eventually(lambda: story.settled("p"))
    await _hold(story)
    await story.cluster.delete(story.parents, story.name, "p")
    await eventually(lambda: _finalizers_are(story, [_OTHERS]))
    asked = len(story.calls("finalize"))

    await story.cluster.delete(CONFIG_MAPS, story.name, "p-1")

    await eventually(lambda: story.called(asked + 1, "finalize"))
    await steadily(lambda: _children(story, {"p-0", "p-2"}), for_seconds=0.5)
    await _release(story)
    await eventually(lambda: _is_gone(story))


async def test_going_parent_without_finalize_hook_keeps_its_children_as_they_are(story: Story) -> None:
    await story.controller()
    await story.parent("p")
    await eventually(lambda: story.settled("p"))
    await _hold(story)
    await story.cluster.delete(story.parents, story.name, "p")
    calls = len(story.calls())

    await story.cluster.delete(CONFIG_MAPS, story.name, "p-1")

    await eventually(lambda: story.called(calls + 1))
    await steadily(lambda: _children(story, {"p-0", "p-2"}), for_seconds=0.5)
    assert story.calls()[-1].request["finalizing"] is False
    await _release(story)
    await eventually(lambda: _is_gone(story))


async def test_finalizer_goes_when_the_finalize_hook_is_given_up(story: Story) -> None:
    await _finalizing(story, finalized)
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    await story.edit(hooks={"sync": story.hook("sync", three_config_maps)})

    await eventually(lambda: _finalizers_are(story, []))
    assert story.calls("finalize") == []


async def test_deselected_parent_is_finalized_and_then_ignored(story: Story) -> None:
    await _finalizing(story, teardown_in_order)
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    await story.relabel("p", {STORY_LABEL: "none"})

    await eventually(lambda: _finalizers_are(story, []))
    await _children(story, set())
    calls = len(story.calls()) + len(story.calls("finalize"))
    await story.relabel("p", {"poke": "1"})
    await steadily(lambda: _called_in_all(story, calls), for_seconds=0.5)


async def test_deselected_parent_without_finalize_hook_keeps_its_children(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="t")
    await eventually(lambda: story.settled("p"))

    await story.relabel("p", {STORY_LABEL: "none"})
    await story.change("p", text="other")

    async def keeps_its_children() -> None:
        assert await story.texts(of="p") == {"p-0": "t", "p-1": "t", "p-2": "t"}

    await steadily(keeps_its_children, for_seconds=0.5)
    # The sync that follows its status may come late; it is about the parent as it was then.
    shown = [unstructured.child_object(call.request, "parent") for call in story.calls()]
    assert all(unstructured.labels(parent)[STORY_LABEL] == story.name for parent in shown)


async def test_finalize_hook_without_webhook_has_the_sync_hook_asked(story: Story) -> None:
    await story.controller(finalized, hooks={"sync": story.hook("sync", finalized), "finalize": {}})
    await story.parent("p")
    await eventually(lambda: story.settled("p"))
    assert await _finalizers(story) == [_ours(story)]

    await story.cluster.delete(story.parents, story.name, "p")

    await eventually(lambda: _is_gone(story))


async def test_finalized_is_not_heard_of_a_parent_that_is_alive(story: Story) -> None:
    await story.controller(finalized, hooks={"sync": story.hook("sync", finalized), "finalize": story.hook("finalize", finalized)})

    await story.parent("p")

    await eventually(lambda: story.rested("p"))
    mark = story.lab.audit.mark()
    await story.relabel("p", {"poke": "1"})
    await eventually(lambda: story.rested("p"))
    assert await story.writes_since(mark) == []
    assert await _finalizers(story) == [_ours(story)]


async def test_finalize_hook_that_fails_keeps_the_parent_and_its_children(story: Story) -> None:
    await _finalizing(story, lambda _: Reply(body=b"sorry", status=500))
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    await story.cluster.delete(story.parents, story.name, "p")

    await eventually(lambda: story.warning(of="p", containing="500"))
    await _children(story, {"p-0", "p-1", "p-2"})
    story.now_answers(teardown_in_order, "finalize")
    await eventually(lambda: _is_gone(story), within_seconds=30)


async def test_object_that_opts_out_loses_its_attachments_and_the_finalizer(story: Story) -> None:
    decorator = Decorator(story=story, name=story.name)
    hooks = {"sync": decorator.hook("sync", attaching("a", "b")), "finalize": decorator.hook("finalize", done_when_nothing_is_attached)}
    await decorator.install(attaching("a", "b"), builtin.PODS, hooks=hooks)
    await story.cluster.create(builtin.PODS, builtin.pod("x", labels={STORY_LABEL: story.name}), namespace=story.name)
    await eventually(lambda: decorator.attached({"pod-x-a": "", "pod-x-b": ""}))
    assert unstructured.finalizers(decorator.calls()[0].parent) == [f"metacontroller.io/decoratorcontroller-{story.name}"]

    await story.cluster.patch(builtin.PODS, story.name, "x", {"metadata": {"labels": {STORY_LABEL: None}}})

    await eventually(lambda: _pod_has_no_finalizer(story))
    await decorator.attached({})
    assert all(call.request["finalizing"] is True for call in decorator.calls("finalize"))
    calls = len(decorator.calls("finalize")) + len(decorator.calls())
    await story.cluster.patch(builtin.PODS, story.name, "x", {"metadata": {"annotations": {"poke": "1"}}})
    await steadily(decorator.no_more_than(calls), for_seconds=0.5)
    await steadily(decorator.no_more_than(calls, "finalize"), for_seconds=0.1)


async def test_decorated_object_that_is_deleted_is_finalized(story: Story) -> None:
    decorator = Decorator(story=story, name=story.name)
    hooks = {"sync": decorator.hook("sync", attaching("a")), "finalize": decorator.hook("finalize", done_when_nothing_is_attached)}
    await decorator.install(attaching("a"), builtin.PODS, hooks=hooks)
    await story.cluster.create(builtin.PODS, builtin.pod("x", labels={STORY_LABEL: story.name}), namespace=story.name)
    await eventually(lambda: decorator.attached({"pod-x-a": ""}))

    await story.cluster.delete(builtin.PODS, story.name, "x")

    await eventually(lambda: _pod_is_gone(story))
    await decorator.attached({})


async def _finalizing(story: Story, finalize: Behaviour) -> None:
    """The story's controller, with a finalize hook of its own."""
    await story.controller(hooks={"sync": story.hook("sync", three_config_maps), "finalize": story.hook("finalize", finalize)})


def _ours(story: Story) -> str:
    return f"metacontroller.io/compositecontroller-{story.name}"


def _observed(request: JsonObject) -> JsonObject:
    return unstructured.child_object(unstructured.child_object(request, "children"), "ConfigMap.v1")


async def _finalizers(story: Story) -> list[str]:
    return unstructured.finalizers(await story.cluster.get(story.parents, story.name, "p"))


async def _finalizers_are(story: Story, wanted: list[str]) -> None:
    found = await _finalizers(story)
    expect(found == wanted, f"finalizers are {found}, not yet {wanted}")


async def _finalize_at_last(story: Story) -> None:
    """The finalize hook says that it is done, and the parent goes: by the next sync, or by one that was on its way."""
    story.now_answers(finalized, "finalize")
    try:
        await story.relabel("p", {"poke": "1"})
    except ApiRefused as refusal:
        expect(refusal.code == _NOT_FOUND, str(refusal))
    await eventually(lambda: _is_gone(story))


async def _hold(story: Story) -> None:
    finalizers: list[JsonValue] = [*await _finalizers(story), _OTHERS]
    await story.cluster.patch(story.parents, story.name, "p", {"metadata": {"finalizers": finalizers}})


async def _release(story: Story) -> None:
    rest = [each for each in await _finalizers(story) if each != _OTHERS]
    await story.cluster.patch(story.parents, story.name, "p", {"metadata": {"finalizers": [*rest]}})


async def _is_gone(story: Story) -> None:
    found = await story.cluster.find(story.parents, story.name, "p")
    expect(found is None, f"p is there, with finalizers {unstructured.finalizers(found or {})}")


async def _children(story: Story, names: set[str]) -> None:
    found = set(await story.config_maps(of="p"))
    expect(found == names, f"children are {found}, not {names}")


async def _called_in_all(story: Story, times: int) -> None:
    seen = len(story.calls()) + len(story.calls("finalize"))
    expect(seen <= times, f"hooks were called {seen} times, more than {times}")


async def _pod_has_no_finalizer(story: Story) -> None:
    found = unstructured.finalizers(await story.cluster.get(builtin.PODS, story.name, "x"))
    expect(not found, f"finalizers are {found}")


async def _pod_is_gone(story: Story) -> None:
    expect(await story.cluster.find(builtin.PODS, story.name, "x") is None, "the Pod is there")
