"""Whichever process is killed in the middle of the work: every parent converges, and none is ever in two hook calls at
once.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping

import pytest

from metaloop.common.json import JsonObject
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.lab import Lab
from metaloop.devkit.testbed.story import Story, three_config_maps

PARENTS = 40
_CONVERGED_SECONDS = 90


def _sigkill(pid_of: Callable[[Lab], int]) -> Callable[[Lab], Awaitable[None]]:
    async def kill(lab: Lab) -> None:
        os.kill(pid_of(lab), signal.SIGKILL)

    return kill


async def _wipe_the_broker(lab: Lab) -> None:
    await lab.platform.broker.wipe()


# Who is killed; devkit starts it again, as an init system would.
VICTIMS: Mapping[str, Callable[[Lab], Awaitable[None]]] = {
    "a reconciler": _sigkill(lambda lab: lab.stack.reconcilers[0].pid),
    "the watcher": _sigkill(lambda lab: lab.stack.watcher.pid),
    "the gateway": _sigkill(lambda lab: lab.stack.hookgateway.pid),
    "the nats-server": _sigkill(lambda lab: lab.platform.broker.pid),
    "the nats-server and its store": _wipe_the_broker,
}


@pytest.mark.parametrize("victim", VICTIMS)
async def test_all_parents_converge_though_a_process_is_killed(story: Story, victim: str) -> None:
    await story.controller(_unhurried)
    await _create_all(story)
    await eventually(lambda: story.called(PARENTS // 2))

    await VICTIMS[victim](story.lab)
    await _change_all(story)

    await eventually(lambda: _all_converged(story), within_seconds=_CONVERGED_SECONDS)


async def test_all_parents_converge_though_both_reconcilers_are_killed_with_calls_out(story: Story) -> None:
    await story.controller(_unhurried)
    await _create_all(story)
    await eventually(lambda: story.called(PARENTS // 2))

    for reconciler in story.lab.stack.reconcilers:
        os.kill(reconciler.pid, signal.SIGKILL)
    await _change_all(story)

    await eventually(lambda: _all_converged(story), within_seconds=_CONVERGED_SECONDS)


async def _unhurried(request: JsonObject) -> JsonObject:
    """Slow enough that calls are out when the process dies."""
    await asyncio.sleep(0.1)
    return three_config_maps(request)


async def _create_all(story: Story) -> None:
    async with asyncio.TaskGroup() as tasks:
        for index in range(PARENTS):
            tasks.create_task(story.parent(f"p{index}", text="before"))


async def _change_all(story: Story) -> None:
    async with asyncio.TaskGroup() as tasks:
        for index in range(PARENTS):
            tasks.create_task(story.change(f"p{index}", text="after"))


async def _all_converged(story: Story) -> None:
    texts = await story.texts()
    assert texts == {f"p{parent}-{child}": "after" for parent in range(PARENTS) for child in range(3)}
    await story.all_settled()
