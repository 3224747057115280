"""Which labels tie children to their parent, given by its selector or generated."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.story import Story, answer_with


async def test_desired_child_outside_the_selector_fails_the_whole_sync(story: Story) -> None:
    def one_is_foreign(request: JsonObject) -> JsonObject:
        return answer_with(request, [config_map("good", labels={"parent": "p"}), config_map("bad", labels={"parent": "other"})])

    await story.controller(one_is_foreign)

    await story.parent("p")

    await eventually(lambda: story.warning(of="p", containing="bad"))
    assert await story.config_maps() == {}


async def test_generated_selector_ties_children_without_labels_of_their_own(story: Story) -> None:
    def unlabelled(request: JsonObject) -> JsonObject:
        return answer_with(request, [config_map("plain", labels={"parent": ""})])

    await story.controller(unlabelled, generateSelector=True)

    parent = await story.parent("p", selector=None)

    await eventually(lambda: story.settled("p", children=1))
    child = (await story.config_maps())["plain"]
    assert unstructured.labels(child)["controller-uid"] == unstructured.uid(parent)


async def test_parent_without_a_usable_selector_is_told_so(story: Story) -> None:
    await story.controller()

    await story.parent("p", selector={})

    await eventually(lambda: story.warning(of="p", containing="selector"))
    assert story.calls() == []
