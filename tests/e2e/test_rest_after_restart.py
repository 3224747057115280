"""Everything is killed and started again: what is as desired causes no write, however children are written."""

import asyncio

import pytest

from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import COMPOSITES
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, Platform
from metaloop.devkit.testbed.story import Story
from metaloop.devkit.testbed.webhook import Webhook

from .apart import Apart, folder_apart

_PARENTS = 40
_SETTLE_SECONDS = 60


@pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
async def test_after_a_restart_of_everything_nothing_is_written(platform: Platform, strategy: str) -> None:
    """The setting chooses for all controllers."""
    apart = Apart(f"restart-{strategy}")
    settings = apart.settings(APPLY_STRATEGY=strategy)
    async with folder_apart(platform) as own, Webhook.serve() as webhook, own.stack(settings=settings) as stack:
        story = Story(lab=Lab(platform=own, stack=stack, webhook=webhook, labels=apart.labels), name=apart.name)
        await _settled_parents(story)
        mark, calls = own.audit.mark(), len(story.calls())

        async with asyncio.TaskGroup() as group:
            for service in stack.services:
                group.create_task(service.kill())
        async with asyncio.TaskGroup() as group:
            for service in stack.services:
                group.create_task(service.start())

        await eventually(lambda: _all_asked(story, since=calls), within_seconds=_SETTLE_SECONDS)
        await story.change("p0", text="new")
        await eventually(lambda: story.shows("p0", text="new"))
        await eventually(lambda: story.settled("p0"))
        writes = [each for each in await own.audit.ours_since(mark) if each.is_write and each.namespace == story.name]
        assert {each.name.partition("-")[0] for each in writes} == {"p0"}
        assert len(writes) == 3 + 1  # its children, and its status for the new generation
        await story.end()


async def _settled_parents(story: Story) -> None:
    """Many parents, at rest."""
    await story.begin()
    await story.cluster.create(COMPOSITES, story.controller_manifest())
    async with asyncio.TaskGroup() as group:
        for index in range(_PARENTS):
            group.create_task(story.parent(f"p{index}", text="x"))
    await eventually(story.all_settled, within_seconds=_SETTLE_SECONDS)


async def _all_asked(story: Story, *, since: int) -> None:
    """Raises AssertionError until the hook was asked about each parent again."""
    asked = {unstructured.name(call.parent) for call in story.calls()[since:]}
    expect(len(asked) == _PARENTS, f"the hook was asked about {len(asked)} parents")
