"""Components: waves from nothing, a pass that has nothing to do, one changed object, many at once, and a large one."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from bench import bounds
from bench.cost import cpu_each, in_namespace, reads_of, writes_of
from bench.figures import Figure, Raw
from bench.load import Predicate, counting, in_parallel
from bench.run import Run
from bench.system import NAMESPACE, PARENTS, System
from metaloop.common.json import JsonObject, dumps
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.audit import Request
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, Cluster
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import config_map, parent, parent_resource

GATES = parent_resource("gates")
_WAVES = 5
_IN_SYNC_SECONDS = 10.0
_MEGABYTE = 1_000_000
_OPEN: JsonObject = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


async def measure(run: Run) -> list[Figure]:
    """300 objects in 5 waves, whose gates somebody else opens; then passes over 1,000 objects; one of them changes."""
    count, many = run.of(300), run.of(1_000)
    async with System.start(run) as system:
        await install_parent(system.cluster, GATES)
        await system.create_component_controller(requeueInterval="1s")
        one_by_one = await _one_by_one(system.cluster, count)
        mark = system.audit.mark()
        seconds = await _in_waves(system, count)
        written = _object_writes(await system.audit.ours_since(mark))
        await system.cluster.delete(PARENTS, NAMESPACE, "waves")
        await _ready(system, "large", children=many)
        in_sync = await _in_sync(run, system)
        changed = await _changed(run, system)
    return [
        run.judge(bounds.COMPONENT, seconds / one_by_one, raw=Raw(value=seconds, unit="s")),
        run.judge(bounds.COMPONENT_WRITES, written / (count + _WAVES)),
        *in_sync,
        *changed,
    ]


async def measure_many(run: Run) -> list[Figure]:
    """200 components of 20 objects at once, served by two reconcilers."""
    count, each = run.of(200), 20
    async with System.start(run) as system:
        await system.create_component_controller()
        names = [f"p{index}" for index in range(count)]
        mark, before = system.audit.mark(), _cpu_of_reconcilers(system)
        async with counting(system.cluster, _is_ready(names)) as ready:
            start = time.monotonic()
            await in_parallel(_create(system.cluster, name, children=each) for name in names)
            seconds = await ready.reach(count) - start
        used = [now - then for now, then in zip(_cpu_of_reconcilers(system), before, strict=True)]
        written = _object_writes(await system.audit.ours_since(mark))
    return [
        run.judge(bounds.COMPONENTS_WRITES, written / (count * each)),
        run.judge(bounds.COMPONENTS_SHARE, min(used) / sum(used)),
        Figure(name="  all ready", value=run.calibration.creates_in(seconds), unit="creates", raw=Raw(value=seconds, unit="s")),
    ]


async def measure_large(run: Run) -> list[Figure]:
    """3,000 objects of one component: its inventory is in ConfigMaps."""
    count = run.of(3_000)
    async with System.start(run) as system:
        await system.create_component_controller()
        mark, before = system.audit.mark(), system.usage()
        seconds = await _ready(system, "large", children=count)
        used, requests = system.usage().since(before), await system.audit.ours_since(mark)
        pieces = [each for each in await system.cluster.list(CONFIG_MAPS, NAMESPACE) if "-inventory-" in unstructured.name(each)]
        sizes = [len(dumps(each)) for each in [*pieces, await system.cluster.get(PARENTS, NAMESPACE, "large")]]
        named = unstructured.child_object(await system.cluster.get(PARENTS, NAMESPACE, "large"), "status").get("inventoryConfigMaps", [])
    return [
        run.judge(bounds.COMPONENT_LARGE_PARENT, max(sizes) / _MEGABYTE),
        run.judge(bounds.COMPONENT_LARGE_WRITES, _object_writes(requests, beside=len(pieces)) / count),
        Figure(
            name="  ConfigMaps with its inventory",
            value=len(pieces),
            raw=Raw(value=len(named) if isinstance(named, list) else 0, unit="named"),
        ),
        Figure(name="  ready", value=run.calibration.creates_in(seconds), unit="creates", raw=Raw(value=seconds, unit="s")),
        *cpu_each(used, count=count, what="object"),
    ]


async def _one_by_one(cluster: Cluster, count: int) -> float:
    """The seconds that one client needs for as many creates, and as many gates that are opened, one after the other."""
    start = time.monotonic()
    for index in range(count):
        await cluster.create(CONFIG_MAPS, config_map(f"alone-{index}", data={"text": "first"}), namespace=NAMESPACE)
    for index in range(_WAVES):
        gate: JsonObject = {"apiVersion": GATES.api_version, "kind": GATES.kind, "metadata": {"name": f"alone-{index}"}, "spec": {}}
        await cluster.create(GATES, gate, namespace=NAMESPACE)
        await cluster.patch(GATES, NAMESPACE, f"alone-{index}", _OPEN, subresource="status")
    return time.monotonic() - start


async def _in_waves(system: System, count: int) -> float:
    """The seconds until a component of so many objects is ready, whose gates are opened as soon as they are there."""
    async with _opening_gates(system.cluster, "waves"):
        return await _ready(system, "waves", children=count, waves=_WAVES, gated=True)


@asynccontextmanager
async def _opening_gates(cluster: Cluster, component: str) -> AsyncIterator[None]:
    async with counting(cluster, lambda obj: unstructured.labels(obj).get("component") == component, resource=GATES) as gates:

        async def open_all() -> None:
            for wave in range(_WAVES):
                await gates.reach(wave + 1)
                await cluster.patch(GATES, NAMESPACE, f"{component}-gate-{wave}", _OPEN, subresource="status")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(open_all())
            yield


async def _ready(system: System, name: str, *, children: int, **spec: object) -> float:
    """Create a component; the seconds until it is ready."""
    async with counting(system.cluster, _is_ready([name])) as ready:
        start = time.monotonic()
        await _create(system.cluster, name, children=children, **spec)
        return await ready.reach(1) - start


async def _create(cluster: Cluster, name: str, *, children: int, **spec: object) -> None:
    fields: JsonObject = {"children": children, "text": "first", **spec}  # type: ignore[dict-item]
    await cluster.create(PARENTS, parent(PARENTS, name, namespace=NAMESPACE, spec=fields), namespace=NAMESPACE)


def _is_ready(names: Sequence[str]) -> Predicate:
    """Whether an object is one of these components, and ready."""
    wanted = frozenset(names)

    def holds(obj: JsonObject) -> bool:
        return unstructured.name(obj) in wanted and unstructured.child_object(obj, "status").get("state") == "Ready"

    return holds


async def _in_sync(run: Run, system: System) -> list[Figure]:
    """What passes over a component cost that is looked at once a second, and has nothing to do."""
    await asyncio.sleep(2)
    await system.hook.forget_calls()
    mark, before = system.audit.mark(), system.usage()
    await asyncio.sleep(_IN_SYNC_SECONDS)
    used, passes = system.usage().since(before), len(await system.hook.calls())
    requests = await system.audit.ours_since(mark)
    return [
        run.judge_cpu(bounds.COMPONENT_SYNC_CPU, used.ours_cpu_seconds / max(1, passes)),
        run.judge(bounds.COMPONENT_SYNC_READS, reads_of(requests)),
        run.judge(bounds.COMPONENT_SYNC_WRITES, writes_of(requests)),
        *cpu_each(used, count=max(1, passes), what="pass"),
    ]


async def _changed(run: Run, system: System) -> list[Figure]:
    """What is written if somebody changes one of the objects."""

    def is_back(obj: JsonObject) -> bool:
        return unstructured.name(obj) == "large-7" and obj.get("data") == {"text": "first"}

    mark = system.audit.mark()
    async with counting(system.cluster, is_back, resource=CONFIG_MAPS) as back:
        await system.cluster.patch(CONFIG_MAPS, NAMESPACE, "large-7", {"data": {"text": "changed"}})
        await back.reach(1)
    await asyncio.sleep(1)
    requests = await system.audit.ours_since(mark)
    return [
        run.judge(bounds.COMPONENT_CHANGE_WRITES, _object_writes(requests)),
        run.judge(bounds.COMPONENT_CHANGE_READS, reads_of(requests)),
    ]


def _object_writes(requests: Sequence[Request], *, beside: int = 0) -> int:
    """How many writes of components' objects there are, `beside` those of so many ConfigMaps with inventories."""
    writes = [each for each in in_namespace(requests) if each.is_write and each.resource in {CONFIG_MAPS.resource, GATES.resource}]
    return len(writes) - beside


def _cpu_of_reconcilers(system: System) -> list[float]:
    return [each.daemon.cpu_seconds() for each in system.stack.reconcilers]
