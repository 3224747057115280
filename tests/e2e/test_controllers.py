"""Controllers come, change and go while the services run."""

import asyncio
from datetime import datetime, timedelta

from metaloop.common.api import MAX_CONCURRENT_ANNOTATION
from metaloop.common.json import JsonObject
from metaloop.common.machine import utc_now
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import COMPOSITES
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.manifests import child_rule, config_map
from metaloop.devkit.testbed.story import Story, answer_with, three_config_maps

from .pace import STATUS_SECONDS


async def test_edited_controller_serves_by_its_new_spec(story: Story) -> None:
    await story.controller(children=[child_rule(method="OnDelete")])
    await story.parent("p", text="before")
    await eventually(lambda: story.settled("p"))
    await story.change("p", text="after")
    await eventually(lambda: story.settled("p"))

    await story.cluster.patch(COMPOSITES, "", story.name, {"spec": {"childResources": [child_rule(method="InPlace")]}})

    await eventually(lambda: story.shows("p", text="after"))


async def test_new_hook_url_is_asked_from_then_on(story: Story) -> None:
    await story.controller()
    await story.parent("p")
    await eventually(lambda: story.settled("p"))
    other = f"{story.name}-other"
    url = story.lab.webhook.on(other, lambda request: answer_with(request, [config_map("only", labels={"parent": "p"})]))

    await story.cluster.patch(COMPOSITES, "", story.name, {"spec": {"hooks": {"sync": {"webhook": {"url": url}}}}})

    await eventually(lambda: story.settled("p", children=1))
    assert set(await story.config_maps(of="p")) == {"only"}


async def test_deleted_controller_leaves_children_alone_and_asks_no_more(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="before")
    await eventually(lambda: story.settled("p"))
    await story.cluster.delete(COMPOSITES, "", story.name)
    await eventually(lambda: story.normal_event(of=story.name, reason="Stopped"))

    await story.change("p", text="after")

    await steadily(lambda: story.never_shown(text="after"))
    assert set((await story.texts(of="p")).values()) == {"before"}


async def test_lifecycle_of_a_controller_is_told_in_events(story: Story) -> None:
    await story.controller()

    await eventually(lambda: story.normal_event(of=story.name, reason="Started"))
    await story.cluster.delete(COMPOSITES, "", story.name)
    await eventually(lambda: story.normal_event(of=story.name, reason="Stopped"))


async def test_bad_edit_is_reported_and_the_old_controller_goes_on(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="before")
    await eventually(lambda: story.settled("p"))

    await story.cluster.patch(COMPOSITES, "", story.name, {"spec": {"hooks": {"sync": {"webhook": {"url": None}}}}})

    await eventually(lambda: story.warning(of=story.name, containing="webhook", reason="CreateError"))
    await story.change("p", text="after")
    await eventually(lambda: story.shows("p", text="after"))


async def test_fresh_controller_is_not_written_to_in_its_first_seconds(story: Story) -> None:
    """Who creates a controller and updates the returned object at once must not meet a conflict."""
    mark, created_at = story.lab.audit.mark(), utc_now()

    await story.controller()
    await story.parent("p")
    await eventually(lambda: story.ready(status="True", reason="Synced"))

    written = [each for each in await story.lab.audit.ours_since(mark) if each.is_write and each.name == story.name]
    assert written[0].resource == "compositecontrollers/status"
    assert datetime.fromisoformat(written[0].at) - created_at >= timedelta(seconds=STATUS_SECONDS)


async def test_two_controllers_of_one_parent_kind_keep_apart(story: Story) -> None:
    await story.controller()
    await story.parent("p")
    await eventually(lambda: story.settled("p"))
    other = Story(lab=story.lab, name=f"{story.name}-2")
    await other.begin()
    await other.controller()

    await other.parent("p", count=1)

    await eventually(lambda: other.settled("p", children=1))
    await other.end()
    assert {call.parent_name for call in other.calls()} == {"p"}
    await story.settled("p")


async def test_no_more_parents_are_in_work_at_once_than_the_controller_is_annotated_with(story: Story) -> None:
    at_once: list[int] = []
    wanted = 2

    async def slow(request: JsonObject) -> JsonObject:
        """Answers a moment after as many calls as wanted were in work at once, so that one more could come."""
        at_once.append(sum(call.ended_at is None for call in story.calls()))
        await eventually(lambda: _reached(at_once, wanted), within_seconds=10)
        await asyncio.sleep(0.1)
        return three_config_maps(request)

    manifest = story.controller_manifest(slow)
    unstructured.metadata(manifest)["annotations"] = {MAX_CONCURRENT_ANNOTATION: "2"}
    await story.cluster.create(COMPOSITES, manifest)
    for number in range(8):
        await story.parent(f"p{number}")
    await eventually(story.all_settled)
    limited, at_once[:], wanted = max(at_once), [], 3

    await story.cluster.patch(COMPOSITES, "", story.name, {"metadata": {"annotations": {MAX_CONCURRENT_ANNOTATION: None}}})

    await eventually(lambda: _reached(at_once, 3))
    assert limited == 2


async def _reached(at_once: list[int], number: int) -> None:
    expect(max(at_once, default=0) >= number, f"no more than {max(at_once, default=0)} were in work at once")
