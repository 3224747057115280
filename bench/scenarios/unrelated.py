"""Parents beside many unrelated objects: the cost of a sync must not depend on what else is in the namespace."""

import statistics
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """What the parents may cost beside the unrelated objects, in times what they cost without them."""

    time: Judged
    cpu: Judged


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """What the parents cost."""

    seconds: float
    """Of one round, the median."""
    cpu_seconds: float
    """Of our services, in all rounds."""


async def measure_orphans(run: Run) -> list[Figure]:
    """300 x 3, without and beside 20,000 ConfigMaps of the same namespace that nobody owns."""
    return await _compare(run, _Bounds(time=bounds.ORPHANS_TIME, cpu=bounds.ORPHANS_CPU), is_owned=False)


async def measure_owned(run: Run) -> list[Figure]:
    """The same beside 20,000 ConfigMaps that another object controls."""
    return await _compare(run, _Bounds(time=bounds.OWNED_TIME, cpu=bounds.OWNED_CPU), is_owned=True)


async def _compare(run: Run, rows: _Bounds, *, is_owned: bool) -> list[Figure]:
    parents, unrelated = run.of(300), run.of(20_000)
    async with System.start(run) as system:
        await system.create_controller()
        await _cost(system, "warm-up", parents=parents)
        without = await _cost(system, "without", parents=parents)
        before = system.usage().rss_bytes["watcher"]
        await _create_unrelated(system.cluster, unrelated, is_owned=is_owned)
        await system.quiet()
        grown = (system.usage().rss_bytes["watcher"] - before) / unrelated
        beside = await _cost(system, "beside", parents=parents)
    cpu = Raw(value=beside.cpu_seconds, unit="s")
    return [
        run.judge(rows.cpu, beside.cpu_seconds / without.cpu_seconds, raw=cpu),
        run.judge(rows.time, beside.seconds / without.seconds, raw=Raw(value=beside.seconds, unit="s")),
        run.judge(bounds.MEMORY, grown / _OBJECT_BYTES, raw=Raw(value=grown / 1_000, unit="KB")),
        Figure(name="300 x 3 without them", value=without.seconds, unit="s"),
    ]


async def _cost(system: System, prefix: str, *, parents: int) -> _Cost:
    """What so many new parents cost, three times."""
    before = system.usage()
    rounds = [[f"{prefix}-{number}-{index}" for index in range(parents)] for number in range(_ROUNDS)]
    seconds = statistics.median([await converge(system.cluster, names, children=3) for names in rounds])
    await system.quiet()
    return _Cost(seconds=seconds, cpu_seconds=system.usage().since(before).ours_cpu_seconds)


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
