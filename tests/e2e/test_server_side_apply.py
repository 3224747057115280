"""Server-side apply, chosen for one controller: what is written, what is told, and that one can change one's mind."""

import pytest

from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import COMPOSITES, CONFIG_MAPS
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.story import Story, answer_with, config_maps_of, three_config_maps
from metaloop.devkit.testbed.webhook import Behaviour

_ANNOTATION = "metaloop.dev/apply-strategy"
_LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"


async def _controller(story: Story, strategy: str, behaviour: Behaviour = three_config_maps) -> None:
    """The story's controller, with a strategy of its own."""
    manifest = story.controller_manifest(behaviour)
    manifest["metadata"] = {**unstructured.metadata(manifest), "annotations": {_ANNOTATION: strategy}}
    await story.cluster.create(COMPOSITES, manifest)


async def _choose(story: Story, strategy: str) -> None:
    await story.cluster.patch(COMPOSITES, "", story.name, {"metadata": {"annotations": {_ANNOTATION: strategy}}})


def _appliers(obj: JsonObject) -> set[str]:
    """Who applies an object server-side."""
    entries = unstructured.metadata(obj).get("managedFields")
    items = [entry for entry in entries if is_object(entry)] if is_array(entries) else []
    return {unstructured.text(entry, "manager") for entry in items if entry.get("operation") == "Apply"}


async def test_annotation_of_a_controller_chooses_server_side_apply(story: Story) -> None:
    await _controller(story, "server-side-apply")
    await story.parent("p", text="one")
    await eventually(lambda: story.settled("p"))

    for child in (await story.config_maps(of="p")).values():
        assert _appliers(child) == {"metacontroller"}
        assert _LAST_APPLIED not in unstructured.annotations(child)

    await story.change("p", text="two")
    await eventually(lambda: story.shows("p", text="two"))


async def test_new_parent_costs_one_write_for_each_child(story: Story) -> None:
    await _controller(story, "server-side-apply")
    mark = story.lab.audit.mark()

    await story.parent("p")
    await eventually(lambda: story.rested("p"))
    await steadily(story.no_more_than(3))

    ours = [each for each in await story.lab.audit.ours_since(mark) if each.namespace == story.name]
    assert sorted(each.resource for each in ours if each.is_write) == ["configmaps"] * 3 + ["things/status"] * 2


async def test_hooks_are_not_shown_managed_fields(story: Story) -> None:
    await _controller(story, "server-side-apply")
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    shown = unstructured.child_object(unstructured.child_object(story.calls()[-1].request, "children"), "ConfigMap.v1")

    assert len(shown) == 3
    assert all("managedFields" not in unstructured.metadata(child) for child in shown.values() if is_object(child))


async def test_drift_in_labels_is_repaired(story: Story) -> None:
    def with_label(request: JsonObject) -> JsonObject:
        children = config_maps_of(request)
        for child in children:
            unstructured.child_object(unstructured.metadata(child), "labels")["tier"] = "ours"
        return answer_with(request, children)

    await _controller(story, "server-side-apply", with_label)
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    await story.cluster.patch(CONFIG_MAPS, story.name, "p-1", {"metadata": {"labels": {"tier": "other", "theirs": "x"}}})

    async def is_repaired() -> None:
        child = await story.cluster.get(CONFIG_MAPS, story.name, "p-1")
        expect(unstructured.labels(child) == {"parent": "p", "tier": "ours", "theirs": "x"}, f"labels are {unstructured.labels(child)}")

    await eventually(is_repaired)


async def test_one_can_change_ones_mind_and_nothing_is_lost(story: Story) -> None:
    await _controller(story, "dynamic-apply")
    await story.parent("p", text="one")
    await eventually(lambda: story.settled("p"))
    await story.cluster.patch(CONFIG_MAPS, story.name, "p-1", {"data": {"theirs": "kept"}})
    before = {name: unstructured.uid(child) for name, child in (await story.config_maps(of="p")).items()}

    for strategy, is_annotated in (("server-side-apply", False), ("dynamic-apply", True), ("server-side-apply", False)):
        await _choose(story, strategy)

        async def is_chosen(*, is_annotated: bool = is_annotated) -> None:
            children = await story.config_maps(of="p")
            found = {name: _LAST_APPLIED in unstructured.annotations(child) for name, child in children.items()}
            expect(found == dict.fromkeys(found, is_annotated), f"annotated: {found}")

        await eventually(is_chosen)
        text = f"by {strategy}"
        await story.change("p", text=text)
        await eventually(lambda text=text: story.shows("p", text=text))

    after = await story.config_maps(of="p")
    assert {name: unstructured.uid(child) for name, child in after.items()} == before
    assert unstructured.child_object(after["p-1"], "data")["theirs"] == "kept"


async def test_field_given_up_while_the_strategy_changes_is_removed(story: Story) -> None:
    def with_extra(request: JsonObject) -> JsonObject:
        children = config_maps_of(request)
        for child in children:
            unstructured.child_object(child, "data")["extra"] = "x"
        return answer_with(request, children)

    story.now_answers(with_extra)
    manifest = story.controller_manifest(with_extra)
    await story.cluster.create(COMPOSITES, manifest)
    await story.parent("p", text="one")
    await eventually(lambda: story.settled("p"))

    story.now_answers(three_config_maps)
    await _choose(story, "server-side-apply")

    async def is_given_up() -> None:
        found = [child["data"] for child in (await story.config_maps(of="p")).values()]
        expect(found == [{"text": "one"}] * 3, f"still {found}")

    await eventually(is_given_up)


async def test_strategy_that_there_is_not_is_told(story: Story) -> None:
    await _controller(story, "magic")
    await story.parent("p")

    await eventually(lambda: story.warning(of="p", containing="dynamic-apply or server-side-apply"))
    assert await story.config_maps(of="p") == {}


async def test_conflict_with_another_manager_is_told(story: Story) -> None:
    await _controller(story, "server-side-apply")
    await story.parent("p", text="ours")
    await eventually(lambda: story.settled("p"))

    await story.cluster.patch(CONFIG_MAPS, story.name, "p-1", {"data": {"text": "theirs"}})

    await eventually(lambda: story.shows("p", text="ours"))
    await eventually(lambda: story.warning(of="p", reason="ApplyConflict", containing=".data.text"))


@pytest.mark.parametrize("misfit", [{"data": {"text": 1}}, {"dada": {"text": "x"}}], ids=["value", "field"])
async def test_child_that_does_not_fit_its_kind_is_told_and_the_others_are_written(story: Story, misfit: JsonObject) -> None:
    def with_misfit(request: JsonObject) -> JsonObject:
        first, *others = config_maps_of(request)
        return answer_with(request, [{**first, **misfit}, *others])

    await _controller(story, "server-side-apply")
    await story.parent("p", text="one")
    await eventually(lambda: story.settled("p"))

    story.now_answers(with_misfit)
    await story.change("p", text="two")

    await eventually(lambda: story.warning(of="p", containing="apply ConfigMap"))
    await eventually(lambda: _says(story, {"p-0": "one", "p-1": "two", "p-2": "two"}))


async def _says(story: Story, texts: dict[str, str]) -> None:
    found = await story.texts(of="p")
    expect(found == texts, f"children say {found}")
