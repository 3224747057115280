"""Two watchers that share the controllers by shards: each controller is served by one of them, and reconcilers serve both."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from metaloop.devkit.testbed.eventually import steadily

from .estates import Estate, change, converge, times_told

_NAMES = [f"sharded-{number}" for number in range(6)]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shards(assets: Path) -> AsyncIterator[Estate]:
    """Six controllers, shared by two watchers; no hook was ever asked about one parent twice at once."""
    async with Estate.settle(assets, watchers=({"SHARD": "0/2"}, {"SHARD": "1/2"}), names=_NAMES, labels={}) as shards:
        yield shards
        assert [str(each) for each in shards.lab.webhook.overlaps] == []


async def test_each_controller_is_served_by_one_watcher(shards: Estate) -> None:
    even, odd = [await shards.share_of(watcher) for watcher in shards.watchers]

    assert even
    assert odd
    assert sorted(story.name for story in (*even, *odd)) == _NAMES
    assert [await times_told(story, "Started") for story in shards.stories] == [1] * len(_NAMES)


async def test_one_reconciler_serves_both_shards(shards: Estate) -> None:
    idle, _ = shards.lab.stack.reconcilers

    await idle.stop()
    await change(shards.stories, text="by one of us")

    await converge(shards.stories, text="by one of us")
    await idle.start()


async def test_death_of_one_shards_watcher_concerns_its_own_controllers_alone(shards: Estate) -> None:
    (mortal, survivor), children = shards.watchers, await shards.children()
    orphaned, served = await shards.share_of(mortal), await shards.share_of(survivor)

    await change(orphaned, text="while it dies")
    await mortal.kill()
    await change(shards.stories, text="while it is dead")

    await converge(served, text="while it is dead")
    calls = len(orphaned[0].calls())
    await steadily(orphaned[0].no_more_than(calls))

    await mortal.start()
    await converge(shards.stories, text="while it is dead")
    assert await shards.children() == children
    assert [await times_told(story, "Started") for story in served] == [1] * len(served)
    assert [await times_told(story, "Started") for story in orphaned] == [2] * len(orphaned)
    assert [await times_told(story, "Stopped") for story in shards.stories] == [0] * len(_NAMES)
