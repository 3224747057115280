"""A parent is created: its children and its status follow, at the least cost there can be."""

from collections import Counter

from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.audit import tally
from metaloop.devkit.testbed.eventually import eventually, steadily
from metaloop.devkit.testbed.story import Story


async def test_new_parent_gets_its_children_and_its_status(story: Story) -> None:
    await story.controller()

    await story.parent("p", text="hello")

    await eventually(lambda: story.settled("p"))
    assert await story.texts(of="p") == {"p-0": "hello", "p-1": "hello", "p-2": "hello"}


async def test_parents_that_were_there_before_their_controller_are_served(story: Story) -> None:
    await story.parent("early")

    await story.controller()

    await eventually(lambda: story.settled("early"))


async def test_child_is_controlled_by_its_parent(story: Story) -> None:
    await story.controller()
    parent = await story.parent("p", count=1)

    await eventually(lambda: story.settled("p", children=1))

    child = (await story.config_maps(of="p"))["p-0"]
    assert unstructured.metadata(child)["ownerReferences"] == [
        {
            "apiVersion": story.parents.api_version,
            "kind": story.parents.kind,
            "name": "p",
            "uid": unstructured.uid(parent),
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


async def test_hook_is_shown_parent_children_and_controller(story: Story) -> None:
    controller = await story.controller()
    await story.parent("p")

    await eventually(lambda: story.settled("p"))

    first, last = story.calls()[0].request, story.calls()[-1].request
    assert set(first) == {"controller", "parent", "children", "related", "finalizing"}
    assert unstructured.uid(unstructured.child_object(first, "controller")) == unstructured.uid(controller)
    assert (first["children"], first["related"], first["finalizing"]) == ({"ConfigMap.v1": {}}, {}, False)
    assert set(unstructured.child_object(unstructured.child_object(last, "children"), "ConfigMap.v1")) == {"p-0", "p-1", "p-2"}


async def test_new_parent_costs_its_children_two_status_writes_no_read_and_three_calls(story: Story) -> None:
    """The status counts the observed children, so each change of what the hook is shown needs another call."""
    await story.controller()
    await story.parent("before")
    await eventually(lambda: story.rested("before"))
    mark = story.lab.audit.mark()

    await story.parent("p")

    await eventually(lambda: story.rested("p"))
    await steadily(story.no_more_than(3, parent="p"))
    requests = [request for request in await story.lab.audit.ours_since(mark) if request.namespace == story.name]
    assert tally([request for request in requests if request.is_write]) == Counter({"create configmaps": 3, "update things/status": 2})
    assert tally([request for request in requests if request.is_read]) == Counter()


async def test_nothing_is_written_or_read_at_rest(story: Story) -> None:
    await story.controller(resyncPeriodSeconds=1)
    await story.parent("p")
    await eventually(lambda: story.rested("p"))
    mark, calls = story.lab.audit.mark(), len(story.calls())

    await eventually(lambda: story.called(calls + 2))

    requests = [request for request in await story.lab.audit.ours_since(mark) if request.namespace == story.name]
    assert tally(requests) == Counter()
