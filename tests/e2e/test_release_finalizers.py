"""A controller is deleted, and its parents have its finalizer: they are freed if its owner asked for that, and whoever
is left behind is told of.
"""

import os
import signal
from datetime import datetime, timedelta

from metaloop.common.api import ON_DELETION_ANNOTATION, RELEASE_FINALIZER, RELEASE_FINALIZERS
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.machine import utc_now
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import COMPOSITES
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.story import Story, three_config_maps

from .pace import STATUS_SECONDS

_HELD_SECONDS = 30
_GC_SECONDS = 90


async def test_deleted_controller_tells_who_is_left(story: Story) -> None:
    await _controller_with_finalizer(story)
    await story.parent("p")
    await story.parent("q")
    for name in ("p", "q"):
        await eventually(lambda name=name: story.settled(name))

    await story.cluster.delete(COMPOSITES, "", story.name)

    told = await eventually(lambda: story.warning(of=story.name, reason="FinalizersLeft"))
    message = unstructured.text(told, "message")
    assert message.startswith(f"2 parents still have the finalizer {_finalizer(story)}")
    assert f"things {story.name}/p, things {story.name}/q" in message
    assert f"metaloop release-finalizers CompositeController/{story.name}" in message
    assert _finalizer(story) in await _finalizers(story, "p")


async def test_parents_are_freed_before_controller_goes(story: Story) -> None:
    await _controller_with_finalizer(story)
    await _tell(story, RELEASE_FINALIZERS)
    await story.parent("p")
    await eventually(lambda: story.settled("p"))
    await eventually(lambda: _is_held(story), within_seconds=_HELD_SECONDS)
    await story.cluster.patch(
        story.parents, story.name, "p", {"metadata": {"finalizers": ["testbed.example.com/other", _finalizer(story)]}}
    )
    calls = len(story.calls())

    await story.cluster.delete(COMPOSITES, "", story.name)

    await eventually(lambda: _is_gone(story), within_seconds=_HELD_SECONDS)
    assert await _finalizers(story, "p") == ["testbed.example.com/other"]
    assert set(await story.config_maps(of="p")) == {"p-0", "p-1", "p-2"}
    assert all(call.request["finalizing"] is False for call in story.calls()[calls:])
    await eventually(lambda: story.normal_event(of=story.name, reason="FinalizersReleased"))


async def test_waiting_parent_goes_with_its_controller(story: Story) -> None:
    """Its webhook never says that it is done: without its controller, nobody would ever take the finalizer off."""
    await _controller_with_finalizer(story, lambda request: {**three_config_maps(request), "finalized": False})
    await _tell(story, RELEASE_FINALIZERS)
    await story.parent("p")
    await eventually(lambda: story.settled("p"))
    await eventually(lambda: _is_held(story), within_seconds=_HELD_SECONDS)
    await story.cluster.delete(story.parents, story.name, "p")

    await story.cluster.delete(COMPOSITES, "", story.name)

    await eventually(lambda: _is_gone(story), within_seconds=_HELD_SECONDS)
    assert await story.cluster.find(story.parents, story.name, "p") is None


async def test_release_goes_on_after_a_watcher_is_killed(story: Story) -> None:
    await _controller_with_finalizer(story)
    await _tell(story, RELEASE_FINALIZERS)
    for index in range(20):
        await story.parent(f"p{index}", count=0)
    await eventually(lambda: story.all_settled(children=0))
    await eventually(lambda: _is_held(story), within_seconds=_HELD_SECONDS)

    await story.cluster.delete(COMPOSITES, "", story.name)
    await eventually(lambda: story.normal_event(of=story.name, reason="Releasing"))
    os.kill(story.lab.stack.watcher.pid, signal.SIGKILL)

    await eventually(lambda: _is_gone(story), within_seconds=60)
    for parent in await story.all_parents():
        assert unstructured.finalizers(parent) == []


async def test_controller_that_is_told_otherwise_is_held_no_longer(story: Story) -> None:
    await _controller_with_finalizer(story)
    await _tell(story, RELEASE_FINALIZERS)
    await eventually(lambda: _is_held(story), within_seconds=_HELD_SECONDS)

    await _tell(story, None)

    await eventually(lambda: _is_free(story))
    await steadily(lambda: _is_free(story), for_seconds=2 * STATUS_SECONDS)


async def test_controller_is_not_written_to_in_its_first_seconds(story: Story) -> None:
    """Who creates one and updates what came back must not meet a conflict."""
    mark, created_at = story.lab.audit.mark(), utc_now()

    await _controller_with_finalizer(story, annotations={ON_DELETION_ANNOTATION: RELEASE_FINALIZERS})
    await eventually(lambda: _is_held(story), within_seconds=_HELD_SECONDS)

    written = [each for each in await story.lab.audit.ours_since(mark) if each.is_write and each.name == story.name]
    times = {each.resource: datetime.fromisoformat(each.at) for each in reversed(written)}
    assert times["compositecontrollers"] - created_at >= timedelta(seconds=2 * STATUS_SECONDS)
    assert min(times.values()) - created_at >= timedelta(seconds=STATUS_SECONDS)


async def _controller_with_finalizer(story: Story, finalize: object = None, *, annotations: JsonObject | None = None) -> JsonObject:
    """The story's controller, with a finalize hook."""
    behaviour = finalize or (lambda request: {**three_config_maps(request), "finalized": request["finalizing"]})
    manifest = story.controller_manifest(behaviour)  # type: ignore[arg-type]
    hook: JsonValue = {"webhook": {"url": story.lab.webhook.url(story.name)}}
    spec = {**unstructured.child_object(manifest, "spec"), "hooks": {"sync": hook, "finalize": hook}}
    metadata = {**unstructured.metadata(manifest), "annotations": annotations or {}}
    return await story.cluster.create(COMPOSITES, {**manifest, "metadata": metadata, "spec": spec})


async def _tell(story: Story, on_deletion: str | None) -> None:
    await story.cluster.patch(COMPOSITES, "", story.name, {"metadata": {"annotations": {ON_DELETION_ANNOTATION: on_deletion}}})


def _finalizer(story: Story) -> str:
    return f"metacontroller.io/compositecontroller-{story.name}"


async def _finalizers(story: Story, name: str) -> list[str]:
    return unstructured.finalizers(await story.cluster.get(story.parents, story.name, name))


async def _is_held(story: Story) -> None:
    found = await story.cluster.get(COMPOSITES, "", story.name)
    expect(RELEASE_FINALIZER in unstructured.finalizers(found), "the controller isn't held")


async def _is_free(story: Story) -> None:
    found = await story.cluster.get(COMPOSITES, "", story.name)
    expect(RELEASE_FINALIZER not in unstructured.finalizers(found), "the controller is held")


async def _is_gone(story: Story) -> None:
    expect(await story.cluster.find(COMPOSITES, "", story.name) is None, "the controller is there")
