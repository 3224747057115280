"""Everything is killed and started again: what is as desired causes no write, however children are written."""

import asyncio
from pathlib import Path

import pytest

from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import COMPOSITES
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

_PARENTS = 100
_SETTLE_SECONDS = 60


@pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
async def test_after_a_restart_of_everything_nothing_is_written(assets: Path, strategy: str) -> None:
    """The setting chooses for all controllers."""
    with run_folder() as folder:
        async with (
            Platform.start(assets, folder) as platform,
            Webhook.serve() as webhook,
            platform.stack(settings={"APPLY_STRATEGY": strategy}) as stack,
        ):
            await install_parent(platform.cluster, THINGS)
            story = Story(lab=Lab(platform=platform, stack=stack, webhook=webhook), name="restart")
            await _settled_parents(story)
            mark, calls = platform.audit.mark(), len(story.calls())

            async with asyncio.TaskGroup() as group:
                for service in stack.services:
                    group.create_task(service.kill())
            for service in stack.services:
                await service.start()

            await eventually(lambda: _all_asked(story, since=calls), within_seconds=_SETTLE_SECONDS)
            await story.change("p0", text="new")
            await eventually(lambda: story.shows("p0", text="new"))
            await eventually(lambda: story.settled("p0"))
            writes = [each for each in await platform.audit.ours_since(mark) if each.is_write and each.namespace == story.name]
            assert {each.name.partition("-")[0] for each in writes} == {"p0"}
            assert len(writes) == 3 + 1  # its children, and its status for the new generation


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
