"""Somebody changes or deletes a child: it becomes what the hook wants, and keeps what the hook says nothing about."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.story import Story, answer_with, config_maps_of, three_config_maps


async def test_drifted_child_is_repaired(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="right")
    await eventually(lambda: story.settled("p"))

    await story.cluster.patch(CONFIG_MAPS, story.name, "p-1", {"data": {"text": "wrong"}})

    await eventually(lambda: story.shows("p", text="right"))


async def test_fields_of_others_survive_a_repair(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="right")
    await eventually(lambda: story.settled("p"))

    foreign = {"metadata": {"annotations": {"by": "another"}}, "data": {"text": "wrong", "other": "kept"}}
    await story.cluster.patch(CONFIG_MAPS, story.name, "p-1", foreign)

    await eventually(lambda: story.shows("p", text="right"))
    child = (await story.config_maps())["p-1"]
    assert unstructured.annotations(child)["by"] == "another"
    assert unstructured.child_object(child, "data")["other"] == "kept"


async def test_field_that_the_hook_gave_up_is_removed(story: Story) -> None:
    def with_extra(request: JsonObject) -> JsonObject:
        children = config_maps_of(request)
        for child in children:
            unstructured.child_object(child, "data")["extra"] = "x"
        return answer_with(request, children)

    await story.controller(with_extra)
    await story.parent("p", text="one")
    await eventually(lambda: story.settled("p"))

    story.now_answers(three_config_maps)
    await story.change("p", text="two")

    await eventually(lambda: story.shows("p", text="two"))
    assert [item["data"] for item in (await story.config_maps(of="p")).values()] == [{"text": "two"}] * 3


async def test_deleted_child_comes_back(story: Story) -> None:
    await story.controller()
    await story.parent("p")
    await eventually(lambda: story.settled("p"))
    before = unstructured.uid((await story.config_maps())["p-1"])

    await story.cluster.delete(CONFIG_MAPS, story.name, "p-1")

    async def is_back() -> None:
        found = await story.config_maps()
        expect("p-1" in found and unstructured.uid(found["p-1"]) != before, "not there again")

    await eventually(is_back)
    await eventually(lambda: story.settled("p"))
