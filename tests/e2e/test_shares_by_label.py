"""Two watchers with a label selector each: a controller whose label is edited moves from one to the other."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from metaloop.common.json import JsonObject
from metaloop.devkit.stack import Service
from metaloop.devkit.testbed.cluster import COMPOSITES
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.lab import Platform
from metaloop.devkit.testbed.story import Story, three_config_maps

from .apart import Apart
from .sharded_lab import PARENTS, ShardedLab, change, converge, has_events


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def teams(platform: Platform) -> AsyncIterator[ShardedLab]:
    """Two controllers of team blue, and a watcher for each team."""
    apart = Apart("teams")
    watchers = [{"TARGET_LABEL_SELECTOR": f"{apart.selector},team={team}"} for team in ("blue", "red")]
    async with ShardedLab.start(platform, apart, watchers=watchers, names=["mover", "stayer"], labels={"team": "blue"}) as teams:
        yield teams


async def test_a_label_moves_a_controller_to_the_other_watcher_in_the_middle_of_changes(teams: ShardedLab) -> None:
    """What the former watcher has in hand ends there before the other begins: no hook is asked about one parent by
    both, no child made anew.
    """
    (mover, stayer), (blue, red) = teams.stories, teams.watchers
    children = await teams.children()

    for team, watcher in (("red", red), ("blue", blue), ("red", red)):
        await change(teams.stories, text=f"before {team}")
        await _edit(mover, {"labels": {"team": team}})
        await change([mover], text=f"after {team}")
        await eventually(lambda watcher=watcher: _serves(teams, watcher, mover))
        await converge([mover], text=f"after {team}")
        await converge([stayer], text=f"before {team}")

    assert await teams.stories_of(blue) == [stayer]
    assert await teams.children() == children
    await eventually(lambda: has_events(mover, started=4, stopped=3))
    await eventually(lambda: has_events(stayer, started=1, stopped=0))
    assert [str(each) for each in teams.lab.webhook.overlaps] == []


async def test_a_controller_moves_only_once_a_hook_that_takes_long_has_answered(teams: ShardedLab) -> None:
    (_, mover), (_, red) = teams.stories, teams.watchers
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def long(request: JsonObject) -> JsonObject:
        asked.set()
        await go_on.wait()
        return three_config_maps(request)

    calls = len(mover.calls())
    mover.now_answers(long)
    await change([mover], text="over there")
    await asyncio.wait_for(asked.wait(), 30)
    await _edit(mover, {"labels": {"team": "red"}})
    await eventually(lambda: _serves(teams, red, mover))
    asked_before = len(mover.calls())

    await steadily(mover.no_more_than(asked_before), for_seconds=2)
    go_on.set()

    assert asked_before - calls <= len(PARENTS)
    await converge([mover], text="over there")
    assert [str(each) for each in teams.lab.webhook.overlaps] == []


async def _edit(story: Story, metadata: JsonObject) -> None:
    """The controller has this in its metadata."""
    await story.cluster.patch(COMPOSITES, "", story.name, {"metadata": metadata})


async def _serves(lab: ShardedLab, watcher: Service, story: Story) -> None:
    expect(story in await lab.stories_of(watcher), f"{watcher.name} does not serve {story.name}")
