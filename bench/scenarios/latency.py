"""One parent changes while nothing else goes on: how soon the hook is called, and how soon the children have followed.

The unit is the round trip of the change itself: what the API server needs for one write, measured for every change.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench import bounds
from bench.figures import Figure
from bench.hook_process import Call
from bench.load import converge, counting
from bench.percentiles import Percentile
from bench.run import Run
from bench.system import NAMESPACE, PARENTS, System
from metaloop.common.json import JsonObject
from metaloop.common.objects.unstructured import child_object, text
from metaloop.devkit.testbed.cluster import CONFIG_MAPS

_PARENTS = 50

# A change is followed by a status and one more sync; the next change must not meet them.
_PAUSE_SECONDS = 0.03


@dataclass(slots=True, kw_only=True)
class _Change:
    """One change: of which parent, and when what happened, on the monotonic clock."""

    parent: str
    text: str
    sent: float = 0.0
    acknowledged: float = 0.0
    followed: float = 0.0


async def measure(run: Run) -> list[Figure]:
    """400 changes, one after another, each of another parent than the one before."""
    names = [f"p{index}" for index in range(_PARENTS)]
    changes = [_Change(parent=names[index % _PARENTS], text=f"change {index}") for index in range(run.of(400))]
    async with System.start(run) as system:
        await system.create_controller()
        await converge(system.cluster, names, children=3)
        await system.quiet()
        await system.hook.forget_calls()
        await _change_one_by_one(system, changes)
        calls = await system.hook.calls()
    round_trips = [change.acknowledged - change.sent for change in changes]
    called = [_first_call(change, calls) - change.acknowledged for change in changes]
    followed = [change.followed - change.acknowledged for change in changes]
    p50, p99 = (Percentile.of(round_trips, percent) for percent in (50, 99))
    return [
        p50.judge(run, bounds.HOOK_P50, called),
        p99.judge(run, bounds.HOOK_P99, called),
        p50.judge(run, bounds.CHILDREN_P50, followed),
        p99.judge(run, bounds.CHILDREN_P99, followed),
        p50.figure,
        p99.figure,
    ]


async def _change_one_by_one(system: System, changes: Sequence[_Change]) -> None:
    """Make each change and note its times. One watch sees the children and stays open all the time."""
    wanted = ""

    def has_followed(obj: JsonObject) -> bool:
        return text(child_object(obj, "data"), "text") == wanted

    async with counting(system.cluster, has_followed, resource=CONFIG_MAPS) as followed:
        for change in changes:
            wanted = change.text
            followed.reset()
            change.sent = time.monotonic()
            await system.cluster.patch(PARENTS, NAMESPACE, change.parent, {"spec": {"text": change.text}})
            change.acknowledged = time.monotonic()
            change.followed = await followed.reach(3)
            await asyncio.sleep(_PAUSE_SECONDS)


def _first_call(change: _Change, calls: Sequence[Call]) -> float:
    return min(call.at for call in calls if call.parent == change.parent and call.at > change.sent)
