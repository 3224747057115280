"""All parents are changed at once: how long until all children and statuses have followed."""

import time

from bench import bounds
from bench.cost import cpu_each, cpu_ratio, reads_of, writes_of
from bench.figures import Figure
from bench.load import change_parents, converge, counting, is_settled
from bench.run import Run
from bench.system import NAMESPACE, System
from metaloop.common.objects.unstructured import child_object
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, Cluster

_TEXT = "second"


async def measure(run: Run) -> list[Figure]:
    """1,000 x 3, updated in place."""
    names = [f"p{index}" for index in range(run.of(1_000))]
    async with System.start(run) as system:
        await system.create_controller()
        await converge(system.cluster, names, children=3)
        await system.quiet()
        mark, before = system.audit.mark(), system.usage()
        seconds = await _followed_after(system.cluster, names)
        await _assert_all_followed(system.cluster, count=3 * len(names))
        await system.quiet()
        used, requests = system.usage().since(before), await system.audit.ours_since(mark)
    return [
        run.judge_seconds(bounds.UPDATE, seconds),
        cpu_ratio(run, bounds.UPDATE_CPU, used),
        run.judge(bounds.UPDATE_WRITES, writes_of(requests) / len(names)),
        run.judge(bounds.UPDATE_READS, reads_of(requests) / len(names)),
        *cpu_each(used, count=len(names), what="parent"),
    ]


async def _followed_after(cluster: Cluster, names: list[str]) -> float:
    """Seconds from the first change until the last status is of the new generation."""
    async with counting(cluster, is_settled(children=3, generation=2)) as right:
        start = time.monotonic()
        await change_parents(cluster, names, text=_TEXT)
        return await right.reach(len(names)) - start


async def _assert_all_followed(cluster: Cluster, *, count: int) -> None:
    children = await cluster.list(CONFIG_MAPS, NAMESPACE, labels="parent")
    texts = [child_object(child, "data").get("text") for child in children]
    if texts != [_TEXT] * count:
        raise AssertionError(f"{texts.count(_TEXT)} of {count} children followed")
