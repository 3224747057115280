"""Parents beside many unrelated objects: the cost of a sync must not depend on what else is in the namespace."""

import statistics

from bench import bounds
from bench.figures import Figure, Judged, Raw
from bench.load import converge, in_parallel
from bench.run import Run
from bench.system import NAMESPACE, System
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, Cluster
from metaloop.devkit.testbed.manifests import config_map

_CONTENT = "x" * 700
_OBJECT_BYTES = 1_000
"""Of an unrelated object: its content and its metadata."""

_ROUNDS = 3


async def measure_orphans(run: Run) -> list[Figure]:
    """300 x 3, without and beside 20,000 ConfigMaps of the same namespace that nobody owns."""
    return await _compare(run, bounds.UNRELATED_ORPHANS, is_owned=False)


async def measure_owned(run: Run) -> list[Figure]:
    """The same beside 20,000 ConfigMaps that another object controls."""
    return await _compare(run, bounds.UNRELATED_OWNED, is_owned=True)


async def _compare(run: Run, row: Judged, *, is_owned: bool) -> list[Figure]:
    parents, unrelated = run.of(300), run.of(20_000)
    async with System.start(run) as system:
        await system.create_controller()
        await _median_seconds(system.cluster, "warm-up", parents=parents)
        without = await _median_seconds(system.cluster, "without", parents=parents)
        await system.quiet()
        before = system.usage().rss_bytes["watcher"]
        await _create_unrelated(system.cluster, unrelated, is_owned=is_owned)
        await system.quiet()
        after = system.usage().rss_bytes["watcher"]
        beside = await _median_seconds(system.cluster, "beside", parents=parents)
    grown = (after - before) / unrelated
    return [
        run.judge(row, beside / without, raw=Raw(value=beside, unit="s")),
        run.judge(bounds.MEMORY, grown / _OBJECT_BYTES, raw=Raw(value=grown / 1_000, unit="KB")),
        Figure(name="300 x 3 without them", value=without, unit="s"),
    ]


async def _median_seconds(cluster: Cluster, prefix: str, *, parents: int) -> float:
    """How long as many new parents take, the median of three times."""
    rounds = [[f"{prefix}-{number}-{index}" for index in range(parents)] for number in range(_ROUNDS)]
    return statistics.median([await converge(cluster, names, children=3) for names in rounds])


async def _create_unrelated(cluster: Cluster, count: int, *, is_owned: bool) -> None:
    owner = await _existing_owner(cluster) if is_owned else None
    await in_parallel(cluster.create(CONFIG_MAPS, _unrelated(index, owner), namespace=NAMESPACE) for index in range(count))


async def _existing_owner(cluster: Cluster) -> JsonObject:
    """A reference to an owner that exists: of an absent one, the garbage collector would delete the objects."""
    owner = await cluster.create(CONFIG_MAPS, config_map("owner", data={}), namespace=NAMESPACE)
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": unstructured.uid(owner), "controller": True}


def _unrelated(index: int, owner: JsonObject | None) -> JsonObject:
    manifest = config_map(f"unrelated-{index}", data={"text": _CONTENT})
    if owner is not None:
        unstructured.metadata(manifest)["ownerReferences"] = [owner]
    return manifest
