"""Thousands of parents are due for a resync, all the time, with a hook that is not quick: who is fresh, and who has few, is not to wait behind them."""

import asyncio
import time

from bench import figures
from bench.figures import Figure
from bench.population import following, in_parallel, is_settled
from bench.rig import NAMESPACE, PARENTS, Rig
from bench.scenarios.scale import Scale
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import COMPOSITES, CONFIG_MAPS
from metaloop.devkit.testbed.manifests import child_rule, composite, parent

_RESYNC_SECONDS = 5
_WATCHED_SECONDS = 10.0
_HOOK_SECONDS = 0.05
_FRESH = ("many-fresh-a", "many-fresh-b", "many-fresh-c")


async def run(scale: Scale) -> list[Figure]:
    """4,000 parents of one controller and 1,000 of another, each resynced every five seconds, which is more than can be done."""
    many, few = scale.of(4_000), scale.of(1_000)
    async with Rig.start(scale.assets, profiles=scale.profiles) as rig:
        await _controller(rig, "many")
        await _controller(rig, "few")
        async with following(rig.cluster, is_settled(children=0)) as follower:
            await _create(rig, "many", many)
            await _create(rig, "few", few)
            await follower.reach(many + few)
        await rig.hook.delay(_HOOK_SECONDS)
        await asyncio.sleep(2 * _RESYNC_SECONDS)
        await rig.hook.forget_calls()
        began = time.monotonic()
        waits = [await _children_of_fresh(rig, name) for name in _FRESH]
        await asyncio.sleep(max(0.0, began + _WATCHED_SECONDS - time.monotonic()))
        calls = await rig.hook.calls()
        seconds = time.monotonic() - began
    served = {name: sum(call.parent.startswith(f"{name}-") for call in calls) for name in ("many", "few")}
    due = {name: seconds * count / _RESYNC_SECONDS for name, count in (("many", many), ("few", few))}
    return [
        scale.judge(figures.ORDER, max(waits)),
        *[Figure(name=f"  of {name}", value=wait, unit="s") for name, wait in zip(_FRESH, waits, strict=True)],
        Figure(name="syncs a second", value=len(calls) / seconds, unit="/s"),
        Figure(name="served of what was due, controller with 4,000 parents", value=served["many"] / due["many"]),
        Figure(name="served of what was due, controller with 1,000 parents", value=served["few"] / due["few"]),
    ]


async def _controller(rig: Rig, name: str) -> None:
    mine: JsonObject = {"apiVersion": PARENTS.api_version, "resource": PARENTS.resource, "labelSelector": {"matchLabels": {"of": name}}}
    rest: JsonObject = {"parentResource": mine, "resyncPeriodSeconds": _RESYNC_SECONDS}
    await rig.cluster.create(COMPOSITES, composite(name, parent=PARENTS, hook_url=rig.hook.sync_url, children=[child_rule()], **rest))


async def _create(rig: Rig, of: str, count: int) -> None:
    manifests = [_parent(f"{of}-{index}", of, children=0) for index in range(count)]
    await in_parallel(rig.cluster.create(PARENTS, manifest, namespace=NAMESPACE) for manifest in manifests)


def _parent(name: str, of: str, *, children: int) -> JsonObject:
    return parent(PARENTS, name, namespace=NAMESPACE, spec={"children": children, "text": "first"}, labels={"of": of})


async def _children_of_fresh(rig: Rig, name: str) -> float:
    """Seconds from a new parent to its last child."""

    def is_its_child(obj: JsonObject) -> bool:
        return unstructured.labels(obj).get("parent") == name

    async with following(rig.cluster, is_its_child, resource=CONFIG_MAPS) as follower:
        start = time.monotonic()
        await rig.cluster.create(PARENTS, _parent(name, "many", children=3), namespace=NAMESPACE)
        return await follower.reach(3) - start
