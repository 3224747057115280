"""Two watchers with a shard each: each controller is served by one of them, and reconcilers serve both."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from metaloop.devkit.testbed.eventually import steadily

from .sharded_lab import ShardedLab, change, converge, event_count

_NAMES = [f"sharded-{number}" for number in range(6)]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shards(assets: Path) -> AsyncIterator[ShardedLab]:
    """Six controllers, divided among two watchers; no hook was ever called twice at once for one parent."""
    async with ShardedLab.start(assets, watchers=({"SHARD": "0/2"}, {"SHARD": "1/2"}), names=_NAMES, labels={}) as shards:
        yield shards
        assert [str(each) for each in shards.lab.webhook.overlaps] == []


async def test_each_controller_is_served_by_one_watcher(shards: ShardedLab) -> None:
    even, odd = [await shards.stories_of(watcher) for watcher in shards.watchers]

    assert even
    assert odd
    assert sorted(story.name for story in (*even, *odd)) == _NAMES
    assert [await event_count(story, "Started") for story in shards.stories] == [1] * len(_NAMES)


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
    calls = len(orphaned[0].calls())
    await steadily(orphaned[0].no_more_than(calls))

    await mortal.start()
    await converge(shards.stories, text="while it is dead")
    assert await shards.children() == children
    assert [await event_count(story, "Started") for story in served] == [1] * len(served)
    assert [await event_count(story, "Started") for story in orphaned] == [2] * len(orphaned)
    assert [await event_count(story, "Stopped") for story in shards.stories] == [0] * len(_NAMES)
