"""Pauses and deletion guards: an annotation takes effect at once, is shown, and ends at once."""

from metaloop.common.api import CONFIRM_DELETION_ANNOTATION, MAX_DELETE_SHARE_ANNOTATION, PAUSED_ANNOTATION
from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import COMPOSITES, CONFIG_MAPS
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.story import Story, answer_with, config_maps_of

_TOLD_SECONDS = 40


async def test_paused_parent_is_left_alone_and_says_so_and_catches_up_at_once(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="before")
    await story.parent("neighbour", text="before")
    for name in ("p", "neighbour"):
        await eventually(lambda name=name: story.rested(name))

    await _annotate_parent(story, "p", {PAUSED_ANNOTATION: "true"})
    await eventually(lambda: _says(story, "p", paused=True))
    calls = len(story.calls(parent="p"))
    await story.change("p", text="after")
    await story.cluster.delete(CONFIG_MAPS, story.name, "p-1")
    await story.change("neighbour", text="after")

    await eventually(lambda: story.shows("neighbour", text="after"))
    await steadily(story.no_more_than(calls, parent="p"))
    assert await story.texts(of="p") == {"p-0": "before", "p-2": "before"}
    told = await eventually(lambda: story.normal_event(of="p", reason="Paused"))
    assert told["count"] == 1
    await _annotate_parent(story, "p", {PAUSED_ANNOTATION: None})
    await eventually(lambda: story.shows("p", text="after"))
    await eventually(lambda: story.settled("p"))


async def test_paused_parent_keeps_the_rest_of_its_status(story: Story) -> None:
    ready: JsonObject = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Fine", "message": ""}
    await story.controller(lambda _: {"status": {"replicas": 3, "conditions": [ready]}, "children": []})
    await story.parent("p")
    await eventually(lambda: _status_has(story, "p", replicas=3))

    await _annotate_parent(story, "p", {PAUSED_ANNOTATION: "true"})

    await eventually(lambda: _says(story, "p", paused=True))
    status = await story.status("p")
    conditions = status["conditions"]
    assert isinstance(conditions, list)
    assert (status["replicas"], conditions[0], len(conditions)) == (3, ready, 2)
    await _annotate_parent(story, "p", {PAUSED_ANNOTATION: None})
    await eventually(lambda: _says(story, "p", paused=False))


async def test_paused_controller_leaves_all_its_parents_alone_until_it_is_resumed(story: Story) -> None:
    await story.controller()
    for name in ("p", "q"):
        await story.parent(name, text="before")
    for name in ("p", "q"):
        await eventually(lambda name=name: story.rested(name))

    await _annotate_controller(story, {PAUSED_ANNOTATION: "true"})
    await eventually(lambda: story.normal_event(of=story.name, reason="Paused"))
    calls, mark = len(story.calls()), story.lab.audit.mark()
    for name in ("p", "q"):
        await story.change(name, text="after")
    await story.parent("new", text="after")

    await eventually(lambda: _controller_says(story, paused=True), within_seconds=_TOLD_SECONDS)
    await steadily(story.no_more_than(calls))
    assert [each for each in await story.lab.audit.ours_since(mark) if each.namespace == story.name] == []
    await _annotate_controller(story, {PAUSED_ANNOTATION: None})
    for name in ("p", "q", "new"):
        await eventually(lambda name=name: story.shows(name, text="after"))
    await eventually(lambda: story.normal_event(of=story.name, reason="Resumed"))
    await eventually(lambda: _controller_says(story, paused=False), within_seconds=_TOLD_SECONDS)


async def test_paused_parent_waits_for_its_finalize_hook(story: Story) -> None:
    url = story.lab.webhook.url(story.name)
    hooks: JsonObject = {"sync": {"webhook": {"url": url}}, "finalize": {"webhook": {"url": url}}}
    await story.controller(
        lambda request: {**answer_with(request, config_maps_of(request)), "finalized": request["finalizing"]}, hooks=hooks
    )
    await story.parent("p")
    await eventually(lambda: story.settled("p"))
    await _annotate_parent(story, "p", {PAUSED_ANNOTATION: "true"})
    await eventually(lambda: _says(story, "p", paused=True))

    await story.cluster.delete(story.parents, story.name, "p")

    async def is_there() -> None:
        await story.cluster.get(story.parents, story.name, "p")

    await steadily(is_there)
    await _annotate_parent(story, "p", {PAUSED_ANNOTATION: None})
    await eventually(lambda: _is_gone(story, "p"))


async def test_guard_holds_a_mass_deletion_back_until_the_parent_confirms_it(story: Story) -> None:
    await _guarded_controller(story)
    await story.parent("p", count=8, text="before")
    await eventually(lambda: story.settled("p", children=8))

    changed = await story.change("p", count=1, text="after")
    await eventually(lambda: story.warning(of="p", reason="DeletionHeldBack", containing=CONFIRM_DELETION_ANNOTATION))
    await eventually(lambda: _texts_are(story, {"p-0": "after", **{f"p-{index}": "before" for index in range(1, 8)}}))
    await eventually(lambda: _controller_fails(story, "deletes 7 children", "p"), within_seconds=_TOLD_SECONDS)
    await _annotate_parent(story, "p", {CONFIRM_DELETION_ANNOTATION: str(unstructured.generation(changed))})

    await eventually(lambda: story.settled("p", children=1))


async def test_confirmation_on_the_controller_lets_all_its_parents_delete(story: Story) -> None:
    await _guarded_controller(story)
    for name in ("p", "q"):
        await story.parent(name, count=6)
    for name in ("p", "q"):
        await eventually(lambda name=name: story.settled(name, children=6))
        await story.change(name, count=0)
        await eventually(lambda name=name: story.warning(of=name, reason="DeletionHeldBack"))

    await _annotate_controller(story, {CONFIRM_DELETION_ANNOTATION: "true"})

    for name in ("p", "q"):
        await eventually(lambda name=name: story.settled(name, children=0))


async def test_answer_without_children_deletes_them_all_where_nobody_asked_for_a_guard(story: Story) -> None:
    await story.controller()
    await story.parent("p", count=20)
    await eventually(lambda: story.settled("p", children=20))

    story.now_answers(lambda _: {})
    await story.change("p", text="nothing")

    async def none_left() -> None:
        expect(await story.config_maps(of="p") == {}, "children are left")

    await eventually(none_left)


async def _guarded_controller(story: Story) -> None:
    """The story's controller, which may delete half of a parent's children at once."""
    manifest = story.controller_manifest(lambda request: answer_with(request, config_maps_of(request)))
    unstructured.metadata(manifest)["annotations"] = {MAX_DELETE_SHARE_ANNOTATION: "0.5"}
    await story.cluster.create(COMPOSITES, manifest)


async def _texts_are(story: Story, wanted: dict[str, str]) -> None:
    found = await story.texts(of="p")
    expect(found == wanted, f"the children's texts are {found}")


async def _annotate_parent(story: Story, name: str, annotations: JsonObject) -> None:
    await story.cluster.patch(story.parents, story.name, name, {"metadata": {"annotations": annotations}})


async def _annotate_controller(story: Story, annotations: JsonObject) -> None:
    await story.cluster.patch(COMPOSITES, "", story.name, {"metadata": {"annotations": annotations}})


def _is_paused(obj: JsonObject) -> bool:
    conditions = unstructured.child_object(obj, "status").get("conditions")
    found = [each for each in conditions if is_object(each)] if is_array(conditions) else []
    return any((each.get("type"), each.get("status")) == ("Paused", "True") for each in found)


async def _says(story: Story, name: str, *, paused: bool) -> None:
    found = await story.cluster.get(story.parents, story.name, name)
    expect(_is_paused(found) is paused, f"the status of {name} is {found.get('status')}")


async def _controller_says(story: Story, *, paused: bool) -> None:
    found = await story.cluster.get(COMPOSITES, "", story.name)
    expect(_is_paused(found) is paused, f"the controller's status is {found.get('status')}")


async def _controller_fails(story: Story, *words: str) -> None:
    found = str((await story.cluster.get(COMPOSITES, "", story.name)).get("status"))
    expect("failingParents': 1" in found and all(word in found for word in words), f"the controller's status is {found}")


async def _status_has(story: Story, name: str, **fields: int) -> None:
    status = await story.status(name)
    expect(all(status.get(key) == value for key, value in fields.items()), f"the status of {name} is {status}")


async def _is_gone(story: Story, name: str) -> None:
    expect(await story.cluster.find(story.parents, story.name, name) is None, f"{name} is there")
