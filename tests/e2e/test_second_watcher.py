"""A second watcher of a shard, both without leader election: it waits, says why, and serves once the first is gone."""

import asyncio
from pathlib import Path

from metaloop.devkit.stack import StackOptions
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

from .unready import unready

_TAKEN_OVER_SECONDS = 30.0


async def test_second_watcher_without_leader_election_waits_for_the_end_of_the_first(assets: Path, tmp_path: Path) -> None:
    with run_folder() as folder:
        async with Platform.start(assets, folder) as platform, Webhook.serve() as webhook, platform.stack() as stack:
            await install_parent(platform.cluster, THINGS)
            story = Story(lab=Lab(platform=platform, stack=stack, webhook=webhook), name="alone")
            await story.begin()
            await story.controller()
            await story.parent("a", text="first")
            await eventually(lambda: story.settled("a"))
            options = StackOptions(kubeconfig=platform.plane.kubeconfig_path, nats_url=platform.broker.url, reconcilers=0)
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
            assert webhook.overlaps == []
