"""A reconciler stalls in the middle of a sync for longer than its lease lives: others go on, and it changes nothing
when it comes back.
"""

import asyncio
from collections import Counter

from metaloop.common.json import JsonObject
from metaloop.devkit.testbed.audit import tally
from metaloop.devkit.testbed.eventually import eventually, steadily
from metaloop.devkit.testbed.story import Story, three_config_maps

PARENTS = 20
_SLOW_PARENTS = 8
_SLOW_SECONDS = 9.5


async def test_stalled_reconciler_is_overtaken_and_changes_nothing_once_it_goes_on(story: Story) -> None:
    stalled = story.lab.stack.reconcilers[0].daemon
    await story.controller(_unhurried)
    async with asyncio.TaskGroup() as tasks:
        for index in range(PARENTS):
            tasks.create_task(story.parent(f"p{index}"))
    await eventually(lambda: story.called(PARENTS // 2))

    stalled.pause()
    try:
        await eventually(story.all_settled, within_seconds=60)
    finally:
        mark = story.lab.audit.mark()
        stalled.resume()

    await steadily(story.all_settled, for_seconds=2)
    assert await _writes(story, mark) == Counter()


async def test_call_of_a_stalled_reconciler_ends_before_the_next_one_begins(story: Story) -> None:
    """It can't end its calls, and its kernel keeps their connections: the gateway ends them with their leases."""
    stalled = story.lab.stack.reconcilers[0].daemon
    hook = _SlowAtFirst()
    await story.controller(hook)
    async with asyncio.TaskGroup() as tasks:
        for index in range(_SLOW_PARENTS):
            tasks.create_task(story.parent(f"p{index}"))
    await eventually(lambda: story.called(_SLOW_PARENTS))

    stalled.pause()
    try:
        await eventually(lambda: story.called(_SLOW_PARENTS + 1), within_seconds=30)
        hook.is_slow = False
        await eventually(story.all_settled, within_seconds=60)
    finally:
        stalled.resume()


class _SlowAtFirst:
    """Works for almost as long as a webhook may, until it is told not to."""

    def __init__(self) -> None:
        self.calls = 0
        self.is_slow = True

    async def __call__(self, request: JsonObject) -> JsonObject:
        self.calls += 1
        if self.is_slow:
            await asyncio.sleep(_SLOW_SECONDS)
        return three_config_maps(request)


async def _unhurried(request: JsonObject) -> JsonObject:
    await asyncio.sleep(0.1)
    return three_config_maps(request)


async def _writes(story: Story, mark: int) -> Counter[str]:
    """The writes since a mark that changed something.

    A process may stop between its last look at the lease and the system call that sends a request. What it sends then
    changes nothing any more: a name is taken by now, and every other write names the version that it was decided from.
    """
    requests = await story.lab.audit.ours_since(mark)
    return tally([each for each in requests if each.is_write and each.namespace == story.name and each.code < 300])
