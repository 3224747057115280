"""One parent with 10,000 children of 2 KB: from nothing, after a lost child, and what others wait beside it."""

import asyncio
import time

from bench import bounds
from bench.cost import cpu_each, reads_of, writes_of
from bench.figures import Figure, Raw
from bench.load import converge, counting, is_settled
from bench.run import Run
from bench.system import NAMESPACE, PARENTS, System
from bench.usage import SERVICES
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.testbed.manifests import parent

_CHILDREN = 10_000
_TEXT = "x" * 2_000
_LARGE = "large"
_PAUSE_SECONDS = 0.05


async def measure(run: Run) -> list[Figure]:
    """With default settings: no limit is raised for it."""
    children = run.of(_CHILDREN)
    async with System.start(run) as system:
        await system.create_controller()
        alone = await _small_parents(system, [f"alone-{index}" for index in range(20)])
        await system.quiet()
        await system.hook.forget_calls()
        mark, before = system.audit.mark(), system.usage()
        seconds = await _create_large(system, children)
        await system.quiet()
        used, requests = system.usage().since(before), await system.audit.ours_since(mark)
        calls = sum(call.parent == _LARGE for call in await system.hook.calls())
        repaired = await _lose_a_child(system)
        beside = await _small_parents_beside_changes(system)
    return [
        run.judge_seconds(bounds.LARGE_PARENT, seconds),
        run.judge(bounds.LARGE_PARENT_WRITES, writes_of(requests) - children),
        run.judge(bounds.LARGE_PARENT_READS, reads_of(requests)),
        run.judge(bounds.LARGE_PARENT_CALLS, calls),
        Figure(name="a child deleted by hand is back", value=repaired, unit="s"),
        run.judge(bounds.LARGE_PARENT_BESIDE, max(beside) / max(alone), raw=Raw(value=max(beside), unit="s")),
        *cpu_each(used, count=children, what="child"),
        *[Figure(name=f"  resident, {name}", value=used.rss_bytes[name] / 2**20, unit="MiB") for name in SERVICES],
    ]


async def _create_large(system: System, children: int) -> float:
    """Create the large parent; the seconds until its status is right."""
    settled = is_settled(children=children)
    manifest = parent(PARENTS, _LARGE, namespace=NAMESPACE, spec={"children": children, "text": _TEXT})
    async with counting(system.cluster, lambda obj: unstructured.name(obj) == _LARGE and settled(obj)) as right:
        start = time.monotonic()
        await system.cluster.create(PARENTS, manifest, namespace=NAMESPACE)
        return await right.reach(1) - start


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
        seconds = await _small_parents(system, [f"beside-{index}" for index in range(20)])
        changing.cancel()
    return seconds


async def _change_large(system: System) -> None:
    number = 0
    while True:
        number += 1
        await system.cluster.patch(CONFIG_MAPS, NAMESPACE, f"{_LARGE}-{number}", {"data": {"text": "drifted"}})
        await asyncio.sleep(_PAUSE_SECONDS)


async def _small_parents(system: System, names: list[str]) -> list[float]:
    """Create one parent after the other; how long each took until its status was right, in seconds."""
    return [await converge(system.cluster, [name], children=3) for name in names]
