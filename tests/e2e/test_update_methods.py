"""What becomes of a child that differs from what is desired, by its update method."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.kinds import KINDS, manifest, patched
from metaloop.devkit.testbed.manifests import child_rule
from metaloop.devkit.testbed.story import Story


async def test_in_place_changes_the_child_and_keeps_its_identity(story: Story) -> None:
    await story.controller(children=[child_rule(method="InPlace")])
    await story.parent("p", text="before")
    await eventually(lambda: story.settled("p"))
    before = await _uids(story)

    await story.change("p", text="after")

    await eventually(lambda: story.shows("p", text="after"))
    assert await _uids(story) == before


async def test_recreate_replaces_the_child(story: Story) -> None:
    await story.controller(children=[child_rule(method="Recreate")])
    await story.parent("p", text="before")
    await eventually(lambda: story.settled("p"))
    before = await _uids(story)

    await story.change("p", text="after")

    await eventually(lambda: story.shows("p", text="after"))
    await eventually(lambda: story.settled("p"))
    assert set((await _uids(story)).values()).isdisjoint(before.values())


@pytest.mark.parametrize("method", ["OnDelete", ""])
async def test_on_delete_waits_for_somebody_to_delete_the_child(story: Story, method: str) -> None:
    await story.controller(children=[child_rule(method=method)])
    await story.parent("p", text="before")
    await eventually(lambda: story.settled("p"))
    await story.change("p", text="after")
    await eventually(lambda: story.settled("p"))
    assert set((await story.texts(of="p")).values()) == {"before"}

    await story.cluster.delete(CONFIG_MAPS, story.name, "p-1")

    await eventually(lambda: _texts_are(story, {"p-0": "before", "p-1": "after", "p-2": "before"}))
    await eventually(lambda: story.settled("p"))
    await steadily(lambda: _texts_are(story, {"p-0": "before", "p-1": "after", "p-2": "before"}))


async def _texts_are(story: Story, wanted: dict[str, str]) -> None:
    found = await story.texts(of="p")
    expect(found == wanted, f"the children's texts are {found}")


async def _uids(story: Story) -> dict[str, str]:
    return {name: unstructured.uid(item) for name, item in (await story.config_maps(of="p")).items()}


async def test_another_update_strategy_is_not_held_up_by_the_default_of_the_former(story: Story) -> None:
    def deployments(request: JsonObject) -> JsonObject:
        spec = unstructured.child_object(unstructured.child_object(request, "parent"), "spec")
        wanted: JsonObject = {"spec": {"strategy": unstructured.child_object(spec, "strategy")}}
        return {"children": [patched(manifest(kind, "web", labels={"parent": "p"}), wanted)]}

    kind = KINDS["Deployment"]
    await story.controller(deployments, children=[child_rule(kind.info.id)])
    await story.parent("p")

    strategies: list[JsonObject] = [{"type": "Recreate"}, {"type": "RollingUpdate"}, {"type": "Recreate"}]
    for strategy in strategies:
        await story.change("p", strategy=strategy)

        async def is_so(strategy: JsonObject = strategy) -> None:
            found = unstructured.child_object(await story.cluster.get(kind.info, story.name, "web"), "spec")
            expect(unstructured.child_object(found, "strategy").get("type") == strategy["type"], f"strategy is {found['strategy']}")

        await eventually(is_so)
