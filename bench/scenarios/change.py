"""All parents are changed at once: how long until all children and statuses have followed."""

import time

from bench import figures
from bench.figures import Figure
from bench.population import change_parents, create_parents, following, is_settled
from bench.rig import NAMESPACE, Rig
from bench.scenarios.scale import Scale
from metaloop.common.objects.unstructured import child_object
from metaloop.devkit.testbed.cluster import CONFIG_MAPS


async def run(scale: Scale) -> list[Figure]:
    """1,000 x 3 in place."""
    count = scale.of(1_000)
    names = [f"p{index}" for index in range(count)]
    async with Rig.start(scale.assets, profiles=scale.profiles) as rig:
        await rig.controller()
        async with following(rig.cluster, is_settled(children=3)) as follower:
            await create_parents(rig.cluster, names, children=3)
            await follower.reach(count)
        await rig.quiet()
        mark, before = rig.audit.mark(), rig.usage()
        async with following(rig.cluster, is_settled(children=3, generation=2)) as follower:
            start = time.monotonic()
            await change_parents(rig.cluster, names, text="second")
            seconds = await follower.reach(count) - start
        await _assert_all_followed(rig, count=3 * count)
        await rig.quiet()
        used = rig.usage().since(before)
        writes = [request for request in rig.audit.ours_since(mark) if request.is_write and request.namespace == NAMESPACE]
    return [
        scale.judge(figures.CHANGE, seconds),
        Figure(name="API writes per changed parent", value=len(writes) / count),
        Figure(name="our CPU per changed parent", value=1_000 * used.ours_cpu_seconds / count, unit="ms"),
    ]


async def _assert_all_followed(rig: Rig, *, count: int) -> None:
    children = await rig.cluster.list(CONFIG_MAPS, NAMESPACE, labels="parent")
    texts = [child_object(child, "data").get("text") for child in children]
    if texts != ["second"] * count:
        raise AssertionError(f"{texts.count('second')} of {count} children followed")
