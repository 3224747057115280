"""Services of their own whose controllers are divided among watchers."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.stack import Service
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, EVENTS
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, Platform
from metaloop.devkit.testbed.story import Story, three_config_maps
from metaloop.devkit.testbed.webhook import Webhook

from .apart import Apart, folder_apart

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
        platform: Platform, apart: Apart, *, watchers: Sequence[Mapping[str, str]], names: Sequence[str], labels: Mapping[str, str]
    ) -> AsyncIterator["ShardedLab"]:
        """Controllers with these names and labels, whose parents have converged."""
        settings = apart.settings()
        async with folder_apart(platform) as own, Webhook.serve() as webhook, own.stack(watchers=watchers, settings=settings) as stack:
            lab = Lab(platform=own, stack=stack, webhook=webhook, labels={**apart.labels, **labels})
            sharded = ShardedLab(lab=lab, stories=tuple(Story(lab=lab, name=name) for name in names))
            async with asyncio.TaskGroup() as tasks:
                for story in sharded.stories:
                    tasks.create_task(_begin(story))
            await converge(sharded.stories, text="first")
            yield sharded
            for story in sharded.stories:
                await story.end()

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


async def _begin(story: Story) -> None:
    await story.begin()
    await story.controller(_slow_hook)
    for parent in PARENTS:
        await story.parent(parent, text="first")


async def _slow_hook(request: JsonObject) -> JsonObject:
    """Slow enough that two concurrent calls for one parent would be noticed."""
    await asyncio.sleep(_HOOK_SECONDS)
    return three_config_maps(request)
