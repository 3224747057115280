"""Who owns what: orphans are adopted, strangers are let go, and nobody's object is taken."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.story import Story


async def test_orphan_that_the_selector_matches_is_adopted(story: Story) -> None:
    await story.cluster.create(CONFIG_MAPS, config_map("p-1", labels={"parent": "p"}, data={"text": "orphan"}), namespace=story.name)
    await story.controller()

    parent = await story.parent("p", text="mine")

    await eventually(lambda: story.shows("p", text="mine"))
    assert _owner_of((await story.config_maps())["p-1"]) == unstructured.uid(parent)


async def test_orphan_that_appears_later_is_adopted_and_then_removed_as_undesired(story: Story) -> None:
    await story.controller()
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    await story.cluster.create(CONFIG_MAPS, config_map("stray", labels={"parent": "p"}), namespace=story.name)

    async def removed() -> None:
        expect("stray" not in await story.config_maps(), "the stray is there")

    await eventually(removed)
    assert set(await story.config_maps(of="p")) == {"p-0", "p-1", "p-2"}


async def test_child_whose_labels_no_longer_match_is_released_and_replaced(story: Story) -> None:
    await story.controller()
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    await story.cluster.patch(CONFIG_MAPS, story.name, "p-1", {"metadata": {"labels": {"parent": "nobody"}}})

    async def released() -> None:
        child = await story.cluster.get(CONFIG_MAPS, story.name, "p-1")
        expect(not unstructured.metadata(child).get("ownerReferences"), "it has an owner")

    await eventually(released)


async def test_object_of_another_controller_is_left_alone(story: Story) -> None:
    """It has the labels and the name of our child, but its controllerRef says whose it is."""
    owner = await story.cluster.create(CONFIG_MAPS, config_map("owner"), namespace=story.name)
    foreign = config_map("p-1", labels={"parent": "p"}, data={"text": "foreign"})
    unstructured.metadata(foreign)["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": unstructured.uid(owner), "controller": True}
    ]
    await story.cluster.create(CONFIG_MAPS, foreign, namespace=story.name)
    await story.controller()

    await story.parent("p", text="mine")

    await eventually(lambda: story.settled("p", children=2))
    assert await story.texts(of="p") == {"p-0": "mine", "p-1": "foreign", "p-2": "mine"}


def _owner_of(obj: JsonObject) -> str:
    references = unstructured.metadata(obj).get("ownerReferences")
    first = references[0] if isinstance(references, list) and references else {}
    return unstructured.text(first, "uid") if isinstance(first, dict) else ""
