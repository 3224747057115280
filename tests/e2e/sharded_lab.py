"""A lab of its own whose controllers are divided among watchers."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.stack import Service
from metaloop.devkit.testbed.cluster import COMPOSITES, CONFIG_MAPS, EVENTS
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.story import THINGS, Story, three_config_maps
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

PARENTS = ("p", "q", "r")
"""What the parents of each controller are called."""

_HOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedLab:
    """Controllers with some parents each, and the watchers that they are divided among."""

    lab: Lab
    stories: tuple[Story, ...]

    @property
    def watchers(self) -> tuple[Service, ...]:
        """One for each shard."""
        return self.lab.stack.watchers

    @staticmethod
    @asynccontextmanager
    async def start(
        assets: Path, *, watchers: Sequence[Mapping[str, str]], names: Sequence[str], labels: Mapping[str, str]
    ) -> AsyncIterator["ShardedLab"]:
        """Controllers with these names and labels, whose parents have converged."""
        with run_folder() as folder:
            async with Platform.start(assets, folder) as platform, Webhook.serve() as webhook, platform.stack(watchers=watchers) as stack:
                await install_parent(platform.cluster, THINGS)
                lab = Lab(platform=platform, stack=stack, webhook=webhook)
                sharded = ShardedLab(lab=lab, stories=tuple(Story(lab=lab, name=name) for name in names))
                for story in sharded.stories:
                    await _begin(story, labels=labels)
                await converge(sharded.stories, text="first")
                yield sharded

    async def stories_of(self, watcher: Service) -> list[Story]:
        """The stories whose controller a watcher serves."""
        shown = {str(each["controller"]) for each in await self.lab.view("controllers", of=watcher)}
        return [story for story in self.stories if f"CompositeController {story.name}" in shown]

    async def children(self) -> set[str]:
        """The UIDs of all children."""
        listed = [await self.lab.cluster.list(CONFIG_MAPS, story.name, labels="parent") for story in self.stories]
        return {unstructured.uid(child) for children in listed for child in children}


async def change(stories: Sequence[Story], *, text: str) -> None:
    """Set the text that all parents of some controllers want for their children."""
    for story in stories:
        for parent in PARENTS:
            await story.change(parent, text=text)


async def converge(stories: Sequence[Story], *, text: str) -> None:
    """Wait until all parents of some controllers have three children with a text, and have settled."""
    for story in stories:
        for parent in PARENTS:
            await eventually(lambda story=story, parent=parent: story.shows(parent, text=text))
            await eventually(lambda story=story, parent=parent: story.settled(parent))


async def has_events(story: Story, *, started: int, stopped: int) -> None:
    """Raise AssertionError unless so many starts and stops of a controller were told."""
    told = (await event_count(story, "Started"), await event_count(story, "Stopped"))
    expect(told == (started, stopped), f"{story.name} has {told} events of starts and stops")


async def event_count(story: Story, reason: str) -> int:
    """How many events about a controller have a reason."""
    events = await story.cluster.list(EVENTS, "default")
    ours = [each for each in events if unstructured.text(unstructured.child_object(each, "involvedObject"), "name") == story.name]
    return sum(unstructured.integer(each, "count") or 1 for each in ours if each["reason"] == reason)


async def _begin(story: Story, *, labels: Mapping[str, str]) -> None:
    await story.begin()
    manifest = story.controller_manifest(_slow_hook)
    manifest["metadata"] = {**unstructured.metadata(manifest), "labels": dict(labels)}
    await story.cluster.create(COMPOSITES, manifest)
    for parent in PARENTS:
        await story.parent(parent, text="first")


async def _slow_hook(request: JsonObject) -> JsonObject:
    """Slow enough that two concurrent calls for one parent would be noticed."""
    await asyncio.sleep(_HOOK_SECONDS)
    return three_config_maps(request)
