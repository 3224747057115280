"""Two watchers with a shard each: each controller is served by one of them, and reconcilers serve both."""

from collections.abc import AsyncIterator

import pytest_asyncio

from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.lab import Platform

from .apart import Apart
from .sharded_lab import ShardedLab, change, converge, has_events

_NAMES = [f"sharded-{number}" for number in range(6)]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shards(platform: Platform) -> AsyncIterator[ShardedLab]:
    """Six controllers, divided among two watchers; no hook was ever called twice at once for one parent."""
    watchers = ({"SHARD": "0/2"}, {"SHARD": "1/2"})
    async with ShardedLab.start(platform, Apart("shards"), watchers=watchers, names=_NAMES, labels={}) as shards:
        yield shards
        assert [str(each) for each in shards.lab.webhook.overlaps] == []


async def test_each_controller_is_served_by_one_watcher(shards: ShardedLab) -> None:
    even, odd = [await shards.stories_of(watcher) for watcher in shards.watchers]

    assert even
    assert odd
    assert sorted(story.name for story in (*even, *odd)) == _NAMES
    for story in shards.stories:
        await eventually(lambda story=story: has_events(story, started=1, stopped=0))


async def test_one_reconciler_serves_both_shards(shards: ShardedLab) -> None:
    idle, _ = shards.lab.stack.reconcilers

    await idle.stop()
    await change(shards.stories, text="by one of us")

    await converge(shards.stories, text="by one of us")
    await idle.start()


async def test_death_of_one_shards_watcher_concerns_its_own_controllers_alone(shards: ShardedLab) -> None:
    (mortal, survivor), children = shards.watchers, await shards.children()
    orphaned, served = await shards.stories_of(mortal), await shards.stories_of(survivor)

    await change(orphaned, text="while it dies")
    await mortal.kill()
    await change(shards.stories, text="while it is dead")

    await converge(served, text="while it is dead")
    for story in orphaned:
        await story.never_shown(text="while it is dead")

    await mortal.start()
    await converge(shards.stories, text="while it is dead")
    assert await shards.children() == children
    for story in shards.stories:
        await eventually(lambda story=story: has_events(story, started=2 if story in orphaned else 1, stopped=0))
