"""A parent is changed: its children follow."""

from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.story import Story


async def test_children_follow_a_changed_parent(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="before")
    await eventually(lambda: story.settled("p"))

    await story.change("p", text="after")

    await eventually(lambda: story.shows("p", text="after"))
    await eventually(lambda: story.settled("p"))


async def test_children_no_longer_desired_are_deleted(story: Story) -> None:
    await story.controller()
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    await story.change("p", count=1)

    await eventually(lambda: story.settled("p", children=1))
    assert set(await story.config_maps(of="p")) == {"p-0"}


async def test_empty_list_of_children_deletes_them_all(story: Story) -> None:
    """A valid answer without children deletes them all; an invalid answer deletes none."""
    await story.controller()
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    story.now_answers(lambda _: {"status": {}, "children": []})
    await story.change("p", text="again")

    async def gone() -> None:
        expect(await story.config_maps(of="p") == {}, "children are left")

    await eventually(gone)


async def test_change_of_one_parent_leaves_others_alone(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="before")
    await story.parent("q", text="before")
    await eventually(lambda: story.settled("p"))
    await eventually(lambda: story.settled("q"))
    before = await story.config_maps(of="q")

    await story.change("p", text="after")

    await eventually(lambda: story.shows("p", text="after"))
    assert {name: unstructured.resource_version(item) for name, item in (await story.config_maps(of="q")).items()} == {
        name: unstructured.resource_version(item) for name, item in before.items()
    }


async def test_parent_no_longer_selected_keeps_its_children_and_is_left_alone(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="before")
    await story.parent("q", text="before")
    await eventually(lambda: story.settled("p"))
    await eventually(lambda: story.settled("q"))

    await story.relabel("p", {"story": "another"})
    await story.change("p", text="after")
    await story.change("q", text="after")

    await eventually(lambda: story.shows("q", text="after"))
    assert set((await story.texts(of="p")).values()) == {"before"}
