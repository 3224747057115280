"""A second watcher of a shard, both without leader election: it waits, says why, and serves once the first is gone."""

import asyncio
from pathlib import Path

from metaloop.devkit.stack import StackOptions
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.lab import Lab, Platform
from metaloop.devkit.testbed.story import Story
from metaloop.devkit.testbed.webhook import Webhook

from .apart import Apart, folder_apart
from .unready import unready

_TAKEN_OVER_SECONDS = 60.0


async def test_second_watcher_without_leader_election_waits_for_the_end_of_the_first(platform: Platform, tmp_path: Path) -> None:
    apart = Apart("alone")
    settings = apart.settings()
    async with folder_apart(platform) as own, Webhook.serve() as webhook, own.stack(settings=settings, reconcilers=1) as stack:
        story = Story(lab=Lab(platform=own, stack=stack, webhook=webhook, labels=apart.labels), name=apart.name)
        await story.begin()
        await story.controller()
        await story.parent("a", text="first")
        await eventually(lambda: story.settled("a"))
        options = StackOptions(kubeconfig=own.plane.kubeconfig_path, nats_url=own.broker.url, reconcilers=0, settings=settings)
        async with unready(options, tmp_path) as second:
            reason = await eventually(lambda: second.reason(second.watcher_url, "dispatch", containing="METALOOP_LEADER_ELECTION"))
            assert f"-{stack.watcher.pid}-" in reason
            await story.change("a", text="second")
            await eventually(lambda: story.shows("a", text="second"))
            assert not second.is_ready.is_set()

            await stack.watcher.kill()

            async with asyncio.timeout(_TAKEN_OVER_SECONDS):
                await second.is_ready.wait()
            await story.change("a", text="third")
            await eventually(lambda: story.shows("a", text="third"))
            assert second.lines("watcher", "watcher.not_alone") == 1
            await story.end()
        assert webhook.overlaps == []
