"""Changes of one parent of a MapController with 20,000 inputs, and of single inputs, while nothing else goes on."""

import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench import bounds
from bench.cost import writes_of
from bench.figures import Figure
from bench.hook_process import Call
from bench.load import counting
from bench.mapping import PARENT, create_inputs, inputs, is_output, seconds_to_map
from bench.percentiles import Percentile
from bench.run import Run
from bench.system import NAMESPACE, PARENTS, System
from metaloop.common.json import JsonObject, loads
from metaloop.common.objects.unstructured import child_object, text
from metaloop.devkit.testbed.cluster import CONFIG_MAPS

_PAUSE_SECONDS = 0.03
_WITHIN_SECONDS = 1_200.0


@dataclass(slots=True, kw_only=True)
class _Change:
    """One change of an input, and when what happened, on the monotonic clock."""

    input: str
    text: str
    sent: float = 0.0
    acknowledged: float = 0.0


async def measure(run: Run) -> list[Figure]:
    """200 inputs change one after another, then the parent does, and the watcher alone is told of the same."""
    count = run.of(20_000)
    names = inputs(count)
    changes = [_Change(input=names[number * 7919 % count], text=f"change {number}") for number in range(run.of(200))]
    async with System.start(run) as system:
        await system.create_map_controller()
        await create_inputs(system.cluster, names)
        await seconds_to_map(system, count)
        await system.quiet()
        of_inputs = await _inputs_changed(run, system, changes)
        of_parent = await _parent_changed(run, system, count)
    return [*of_inputs, *of_parent, *await _marked(run, count)]


async def _inputs_changed(run: Run, system: System, changes: Sequence[_Change]) -> list[Figure]:
    await system.hook.forget_calls()
    mark = system.audit.mark()
    await _change_one_by_one(system, changes)
    await system.quiet()
    calls, requests = await system.hook.calls(), await system.audit.ours_since(mark)
    round_trips = [change.acknowledged - change.sent for change in changes]
    called = [_first_call(change, calls) - change.acknowledged for change in changes]
    p50, p99 = (Percentile.of(round_trips, percent) for percent in (50, 99))
    return [
        p50.judge(run, bounds.MAP_HOOK_P50, called),
        p99.judge(run, bounds.MAP_HOOK_P99, called),
        p50.figure,
        p99.figure,
        run.judge(bounds.MAP_CHANGE_CALLS, len(calls) / len(changes)),
        run.judge(bounds.MAP_CHANGE_WRITES, writes_of(requests) / len(changes)),
    ]


async def _change_one_by_one(system: System, changes: Sequence[_Change]) -> None:
    wanted = ""

    def has_followed(obj: JsonObject) -> bool:
        return is_output(obj) and text(child_object(obj, "data"), "text") == wanted

    async with counting(system.cluster, has_followed, resource=CONFIG_MAPS) as followed:
        for change in changes:
            wanted = f"first {change.text}"
            followed.reset()
            change.sent = time.monotonic()
            await system.cluster.patch(CONFIG_MAPS, NAMESPACE, change.input, {"data": {"text": change.text}})
            change.acknowledged = time.monotonic()
            await followed.reach(1)
            await asyncio.sleep(_PAUSE_SECONDS)


def _first_call(change: _Change, calls: Sequence[Call]) -> float:
    return min(call.at for call in calls if call.parent == change.input and call.at > change.sent)


async def _parent_changed(run: Run, system: System, count: int) -> list[Figure]:
    """Change the text that the parent wants in all outputs."""
    await system.hook.forget_calls()

    def has_followed(obj: JsonObject) -> bool:
        return is_output(obj) and text(child_object(obj, "data"), "text").startswith("second ")

    async with counting(system.cluster, has_followed, resource=CONFIG_MAPS) as followed:
        start = time.monotonic()
        await system.cluster.patch(PARENTS, NAMESPACE, PARENT, {"spec": {"text": "second"}})
        seconds = await followed.reach(count, within_seconds=_WITHIN_SECONDS) - start
    await system.quiet()
    return [
        run.judge(bounds.MAP_PARENT_CALLS, len(await system.hook.calls()) / count),
        Figure(name="changed parent: all outputs updated", value=seconds, unit="s"),
    ]


async def _marked(run: Run, count: int) -> list[Figure]:
    """What `bench.map_process` measured of a watcher by itself."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.map_process", str(count), stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    measured: Mapping[str, float] = loads(output.splitlines()[-1])
    return [
        run.judge_seconds(bounds.MAP_MARKS, measured["markSeconds"]),
        run.judge_seconds(bounds.MAP_TURN, measured["longestTurn"]),
        run.judge_seconds(bounds.MAP_SELECT_TURN, measured["longestSelectTurn"]),
        run.judge_seconds(bounds.MAP_END_TURN, measured["longestEndTurn"]),
        Figure(
            name="  memory for an input with its output and a resync timer, beside these", value=measured["keptBytes"] / 1_000, unit="KB"
        ),
    ]
