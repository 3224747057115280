"""Thousands of parents are due for a resync all the time, with a hook that is not quick.

A fresh parent must not wait behind them, and the controller with fewer parents must get its share.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench import bounds
from bench.figures import Figure, Raw
from bench.hook_process import Call
from bench.load import counting, in_parallel, is_settled, seconds_to_children
from bench.run import Run
from bench.system import NAMESPACE, PARENTS, System
from metaloop.common.json import JsonObject
from metaloop.devkit.testbed.cluster import COMPOSITES, Cluster
from metaloop.devkit.testbed.manifests import child_rule, composite, parent

_RESYNC_SECONDS = 5
_WATCHED_SECONDS = 10.0
_HOOK_SECONDS = 0.05
_WARM_UP, *_ALONE = ("many-warm-up", "many-alone-a", "many-alone-b", "many-alone-c")
_FRESH = ("many-fresh-a", "many-fresh-b", "many-fresh-c")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observed:
    """What was seen while resyncs were due."""

    waits: Sequence[float]
    """Seconds until each fresh parent had its children."""
    calls: Sequence[Call]
    seconds: float


async def measure(run: Run) -> list[Figure]:
    """4,000 parents of one controller and 1,000 of another, each due for a resync every five seconds."""
    many, few = run.of(4_000), run.of(1_000)
    async with System.start(run) as system:
        await _create_controller(system, "many")
        await _create_controller(system, "few")
        await system.hook.delay(_HOOK_SECONDS)
        await _fresh(system.cluster, _WARM_UP)
        alone = statistics.median([await _fresh(system.cluster, name) for name in _ALONE])
        await system.hook.delay(0)
        async with counting(system.cluster, is_settled(children=0)) as right:
            await _create_parents(system.cluster, "many", many)
            await _create_parents(system.cluster, "few", few)
            await right.reach(many + few)
        await system.hook.delay(_HOOK_SECONDS)
        await asyncio.sleep(2 * _RESYNC_SECONDS)
        observed = await _observe(system)
    wait = max(observed.waits)
    return [
        run.judge(bounds.RESYNC_BACKLOG, wait / alone, raw=Raw(value=wait, unit="s")),
        run.judge(bounds.RESYNC_FAIRNESS, _share(observed, "many", many) / _share(observed, "few", few)),
        *[Figure(name=f"  of {name}", value=each, unit="s") for name, each in zip(_FRESH, observed.waits, strict=True)],
        Figure(name="  alone", value=alone, unit="s"),
        Figure(name="syncs a second", value=len(observed.calls) / observed.seconds, unit="/s"),
        Figure(name="resyncs of those due, controller with 4,000 parents", value=_share(observed, "many", many)),
        Figure(name="resyncs of those due, controller with 1,000 parents", value=_share(observed, "few", few)),
    ]


async def _observe(system: System) -> _Observed:
    await system.hook.forget_calls()
    start = time.monotonic()
    waits = [await _fresh(system.cluster, name) for name in _FRESH]
    await asyncio.sleep(max(0.0, start + _WATCHED_SECONDS - time.monotonic()))
    return _Observed(waits=waits, calls=await system.hook.calls(), seconds=time.monotonic() - start)


def _share(observed: _Observed, controller: str, parents: int) -> float:
    """How many of the resyncs of a controller that were due were done."""
    done = sum(call.parent.startswith(f"{controller}-") for call in observed.calls)
    return done / (parents * observed.seconds / _RESYNC_SECONDS)


async def _create_controller(system: System, name: str) -> None:
    mine: JsonObject = {"apiVersion": PARENTS.api_version, "resource": PARENTS.resource, "labelSelector": {"matchLabels": {"of": name}}}
    rest: JsonObject = {"parentResource": mine, "resyncPeriodSeconds": _RESYNC_SECONDS}
    manifest = composite(name, parent=PARENTS, hook_url=system.hook.sync_url, children=[child_rule()], **rest)
    await system.cluster.create(COMPOSITES, manifest)


async def _create_parents(cluster: Cluster, of: str, count: int) -> None:
    manifests = [_parent(f"{of}-{index}", of, children=0) for index in range(count)]
    await in_parallel(cluster.create(PARENTS, manifest, namespace=NAMESPACE) for manifest in manifests)


def _parent(name: str, of: str, *, children: int) -> JsonObject:
    return parent(PARENTS, name, namespace=NAMESPACE, spec={"children": children, "text": "first"}, labels={"of": of})


async def _fresh(cluster: Cluster, name: str) -> float:
    """Seconds from a new parent to its last child."""
    manifest = _parent(name, "many", children=3)
    return await seconds_to_children(cluster, name, lambda: cluster.create(PARENTS, manifest, namespace=NAMESPACE))
