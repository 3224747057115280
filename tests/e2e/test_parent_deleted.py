"""A parent is deleted: Kubernetes' garbage collector takes its children, and Metaloop does not bring them back."""

from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.story import Story

# The garbage collector looks for new kinds of owner only now and then.
_GC_SECONDS = 90


async def test_children_of_a_deleted_parent_are_collected(story: Story) -> None:
    await story.controller()
    await story.parent("p")
    await story.parent("q")
    await eventually(lambda: story.settled("p"))
    await eventually(lambda: story.settled("q"))

    await story.cluster.delete(story.parents, story.name, "p")

    async def collected() -> None:
        expect(await story.config_maps(of="p") == {}, "children are left")

    await eventually(collected, within_seconds=_GC_SECONDS)
    assert len(await story.config_maps(of="q")) == 3


async def test_parent_created_again_under_the_same_name_gets_children_of_its_own(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="first")
    await eventually(lambda: story.settled("p"))

    await story.cluster.delete(story.parents, story.name, "p")
    await story.parent("p", text="second")

    await eventually(lambda: story.shows("p", text="second"), within_seconds=_GC_SECONDS)
    await eventually(lambda: story.settled("p"))
