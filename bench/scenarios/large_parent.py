"""Large parents: from nothing, after a lost child, two at once, and what others wait beside their changes."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import aiohttp

from bench import bounds
from bench.cost import cpu_each, reads_of, writes_of
from bench.figures import Figure, Raw
from bench.load import converge, counting, is_settled
from bench.loops import Lags, lags_of, peak_bytes, turns_between
from bench.run import Run
from bench.system import NAMESPACE, PARENTS, System
from bench.usage import SERVICES
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.testbed.manifests import parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a parent is."""

    children: int
    bytes_each: int


MANY: Final = Size(children=10_000, bytes_each=2_000)
HEAVY: Final = Size(children=2_000, bytes_each=50_000)

_LARGE = "large"
_PAUSE_SECONDS = 0.05
_SMALL = 100
_MOST_MIB = 600
"""The reconciler should need no more memory, with two large parents at once."""
_FINE_BEAT = {"LOOP_BEAT_SECONDS": "0.02"}
"""What is measured of a long turn of an event loop is at most so much too short."""
_EXPIRED = "metaloop_queue_leases_expired_total "


async def measure(run: Run) -> list[Figure]:
    """One parent with many children, and small parents beside its changes. No limit is raised for it."""
    children = run.of(MANY.children)
    async with System.start(run, settings=_FINE_BEAT) as system:
        await system.create_controller()
        alone = await _small_parents(system, "alone")
        await system.quiet()
        await system.hook.forget_calls()
        mark, before, lags = system.audit.mark(), system.usage(), await lags_of(system.stack.services)
        seconds = await _create_large(system, [_LARGE], children=children, bytes_each=MANY.bytes_each)
        await system.quiet()
        used, requests = system.usage().since(before), await system.audit.ours_since(mark)
        calls = sum(call.parent == _LARGE for call in await system.hook.calls())
        repaired = await _lose_a_child(system)
        beside = await _small_parents_beside_changes(system)
        turns = await _turns(system, lags)
    slowest = [_p99(beside), _p99(alone)]
    return [
        run.judge_seconds(bounds.LARGE_PARENT, seconds),
        run.judge(bounds.LARGE_PARENT_WRITES, writes_of(requests) - children),
        run.judge(bounds.LARGE_PARENT_READS, reads_of(requests)),
        run.judge(bounds.LARGE_PARENT_CALLS, calls),
        run.judge_seconds(bounds.LARGE_PARENT_REPAIR, repaired),
        run.judge(bounds.LARGE_PARENT_BESIDE, slowest[0] / slowest[1], raw=Raw(value=1_000 * (slowest[0] - slowest[1]), unit="ms more")),
        *turns,
        *cpu_each(used, count=children, what="child"),
        *[Figure(name=f"  resident, {name}", value=used.rss_bytes[name] / 2**20, unit="MiB") for name in SERVICES],
    ]


async def measure_two(run: Run, *, size: Size) -> list[Figure]:
    """Two large parents at once, with a single reconciler."""
    children = run.of(size.children)
    async with System.start(run, settings=_FINE_BEAT, reconcilers=1) as system:
        await system.create_controller()
        lags = await lags_of(system.stack.services)
        seconds = await _create_large(system, [_LARGE, "larger"], children=children, bytes_each=size.bytes_each)
        await system.quiet()
        repaired = await _lose_a_child(system)
        await system.quiet()
        turns = await _turns(system, lags)
        [reconciler] = system.stack.reconcilers
        peak = peak_bytes(reconciler) / 2**20
        return [
            run.judge_seconds(bounds.LARGE_PARENTS, seconds),
            run.judge(bounds.LARGE_PARENTS_LEASES, await _expired_leases(system)),
            run.judge(bounds.LARGE_PARENTS_MEMORY, peak / _MOST_MIB, raw=Raw(value=peak, unit="MiB")),
            Figure(name="a child deleted by hand is back", value=repaired, unit="s"),
            *turns,
            *[Figure(name=f"  most memory, {each.name}", value=peak_bytes(each) / 2**20, unit="MiB") for each in system.stack.services],
        ]


measure_many_twice = partial(measure_two, size=MANY)
measure_heavy_twice = partial(measure_two, size=HEAVY)


async def _create_large(system: System, names: Sequence[str], *, children: int, bytes_each: int) -> float:
    """Create large parents; the seconds until their statuses are right."""
    settled = is_settled(children=children)
    async with counting(system.cluster, lambda obj: unstructured.name(obj) in names and settled(obj)) as right:
        start = time.monotonic()
        for name in names:
            manifest = parent(PARENTS, name, namespace=NAMESPACE, spec={"children": children, "text": "x" * bytes_each})
            await system.cluster.create(PARENTS, manifest, namespace=NAMESPACE)
        return await right.reach(len(names)) - start


async def _lose_a_child(system: System) -> float:
    """Delete a child of the large parent; the seconds until another one of its name is there."""
    name = f"{_LARGE}-0"
    lost = unstructured.uid(await system.cluster.get(CONFIG_MAPS, NAMESPACE, name))

    def is_back(obj: JsonObject) -> bool:
        return unstructured.name(obj) == name and unstructured.uid(obj) != lost

    async with counting(system.cluster, is_back, resource=CONFIG_MAPS) as back:
        start = time.monotonic()
        await system.cluster.delete(CONFIG_MAPS, NAMESPACE, name)
        return await back.reach(1) - start


async def _small_parents_beside_changes(system: System) -> list[float]:
    """Change the large parent again and again, and create small ones meanwhile."""
    async with asyncio.TaskGroup() as tasks:
        changing = tasks.create_task(_change_large(system))
        seconds = await _small_parents(system, "beside")
        changing.cancel()
    return seconds


async def _change_large(system: System) -> None:
    number = 0
    while True:
        number += 1
        await system.cluster.patch(CONFIG_MAPS, NAMESPACE, f"{_LARGE}-{number}", {"data": {"text": "drifted"}})
        await asyncio.sleep(_PAUSE_SECONDS)


async def _small_parents(system: System, name: str) -> list[float]:
    """Create one parent after the other; how long each took until its status was right, in seconds."""
    return [await converge(system.cluster, [f"{name}-{index}"], children=3) for index in range(_SMALL)]


def _p99(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=100)[-1]


async def _turns(system: System, before: Lags) -> list[Figure]:
    """The turns of each service's event loop since `before`."""
    after = await lags_of(system.stack.services)
    turns = {name: turns_between(before[name], lags) for name, lags in after.items()}
    return [
        Figure(name="turns of an event loop of more than 0.1 s, all services", value=sum(each.long for each in turns.values())),
        *[Figure(name=f"  no turn is longer, {name}", value=1_000 * each.longest, unit="ms") for name, each in turns.items()],
    ]


async def _expired_leases(system: System) -> float:
    """How many leases ran out."""
    async with aiohttp.ClientSession() as session, session.get(system.stack.watcher.metrics_url) as response:
        lines = (await response.text()).splitlines()
    return next(float(line.removeprefix(_EXPIRED)) for line in lines if line.startswith(_EXPIRED))
