"""Parents beside many objects that are none of theirs: the cost of a sync is not to depend on who lives next door."""

import statistics
import time

from bench import figures
from bench.figures import Bound, Figure
from bench.population import create_parents, following, in_parallel, is_settled
from bench.rig import NAMESPACE, Rig
from bench.scenarios.scale import Scale
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, Cluster
from metaloop.devkit.testbed.manifests import config_map

_CONTENT = "x" * 700
"""With its metadata, the object has 1 KB."""

_ROUNDS = 3


async def run(scale: Scale) -> list[Figure]:
    """300 x 3 without and beside 20,000 ownerless ConfigMaps of the same namespace."""
    return await _run(scale, figures.CROWD, is_owned=False)


async def run_owned(scale: Scale) -> list[Figure]:
    """The same beside 20,000 that somebody else owns."""
    return await _run(scale, figures.OWNED_CROWD, is_owned=True)


async def _run(scale: Scale, bound: Bound, *, is_owned: bool) -> list[Figure]:
    parents, crowd = scale.of(300), scale.of(20_000)
    async with Rig.start(scale.assets, profiles=scale.profiles) as rig:
        await rig.controller()
        alone = [await _converged_after(rig, prefix=f"alone{index}", parents=parents) for index in range(1 + _ROUNDS)][1:]
        await rig.quiet()
        before = rig.usage().rss_bytes["watcher"]
        owner = await _somebody(rig.cluster) if is_owned else None
        await in_parallel(rig.cluster.create(CONFIG_MAPS, _stranger(index, owner), namespace=NAMESPACE) for index in range(crowd))
        await rig.quiet()
        after = rig.usage().rss_bytes["watcher"]
        beside = [await _converged_after(rig, prefix=f"beside{index}", parents=parents) for index in range(_ROUNDS)]
    return [
        scale.judge(bound, statistics.median(beside) / statistics.median(alone)),
        Figure(name="  without", value=statistics.median(alone), unit="s"),
        Figure(name="  beside them", value=statistics.median(beside), unit="s"),
        scale.judge(figures.MEMORY, (after - before) / crowd / 1_000),
    ]


async def _somebody(cluster: Cluster) -> JsonObject:
    """The reference to an owner that is really there: of an absent one, the garbage collector would delete the crowd while we measure."""
    somebody = await cluster.create(CONFIG_MAPS, config_map("somebody", data={}), namespace=NAMESPACE)
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "somebody", "uid": unstructured.uid(somebody), "controller": True}


def _stranger(index: int, owner: JsonObject | None) -> JsonObject:
    manifest = config_map(f"crowd-{index}", data={"text": _CONTENT})
    if owner is not None:
        unstructured.metadata(manifest)["ownerReferences"] = [owner]
    return manifest


async def _converged_after(rig: Rig, *, prefix: str, parents: int) -> float:
    settled = is_settled(children=3)
    async with following(rig.cluster, lambda obj: unstructured.name(obj).startswith(prefix) and settled(obj)) as follower:
        start = time.monotonic()
        await create_parents(rig.cluster, [f"{prefix}-{index}" for index in range(parents)], children=3)
        return await follower.reach(parents) - start
