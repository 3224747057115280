"""Parents from nothing: how long until all statuses are right, and what it costs whom."""

import time

from bench import figures
from bench.figures import Bound, Figure
from bench.population import create_parents, following, in_parallel, is_settled
from bench.rig import NAMESPACE, Rig
from bench.scenarios.scale import Scale
from bench.usage import SERVICES, Usage
from metaloop.devkit.testbed.audit import Request, tally
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, Cluster
from metaloop.devkit.testbed.manifests import config_map

_RATE_SAMPLE = 2_000


async def run(scale: Scale) -> list[Figure]:
    """1,000 x 3, with everything that can be counted."""
    parents = scale.of(1_000)
    async with Rig.start(scale.assets, profiles=scale.profiles) as rig:
        await rig.controller()
        mark, before = rig.audit.mark(), rig.usage()
        seconds = await _converged_after(rig, parents=parents, children=3)
        await rig.quiet()
        used, calls = rig.usage().since(before), len(await rig.hook.calls())
        requests = rig.audit.ours_since(mark)
        rate = await _create_rate(rig.cluster, scale.of(_RATE_SAMPLE))
    return [
        scale.judge(figures.CREATE, seconds),
        Figure(name="children created", value=3 * parents / seconds, unit="/s"),
        Figure(name="the API server's own create rate, ConfigMaps", value=rate, unit="/s"),
        scale.judge(figures.CALLS_PER_PARENT, calls / parents),
        *_request_figures(scale, requests, parents=parents),
        scale.judge(figures.CPU_PER_PARENT, 1_000 * used.ours_cpu_seconds / parents),
        *_usage_figures(used, syncs=calls),
    ]


async def run_wide(scale: Scale) -> list[Figure]:
    """300 x 10: more children to a parent."""
    async with Rig.start(scale.assets, profiles=scale.profiles) as rig:
        await rig.controller()
        return [await _wide(rig, scale, bound=figures.CREATE_WIDE)]


async def _wide(rig: Rig, scale: Scale, *, bound: Bound) -> Figure:
    return scale.judge(bound, await _converged_after(rig, parents=scale.of(300), children=10))


async def _converged_after(rig: Rig, *, parents: int, children: int) -> float:
    """Seconds from the first create to the last right status."""
    async with following(rig.cluster, is_settled(children=children)) as follower:
        start = time.monotonic()
        await create_parents(rig.cluster, [f"p{index}" for index in range(parents)], children=children)
        return await follower.reach(parents) - start


async def _create_rate(cluster: Cluster, count: int) -> float:
    """ConfigMaps per second that the API server takes from one load process, while nothing else goes on."""
    start = time.monotonic()
    await in_parallel(
        cluster.create(CONFIG_MAPS, config_map(f"rate-{index}", data={"text": "x"}), namespace=NAMESPACE) for index in range(count)
    )
    return count / (time.monotonic() - start)


def _request_figures(scale: Scale, requests: list[Request], *, parents: int) -> list[Figure]:
    """Requests per parent as the API server counted them: in sum against the bounds, then by verb and resource."""
    writes = [request for request in requests if request.is_write and request.namespace == NAMESPACE]
    reads = [request for request in requests if request.is_read and request.namespace == NAMESPACE]
    each = [
        Figure(name=f"  {what}, per parent", value=count / parents)
        for what, count in sorted(tally(requests).items())
        if count > parents / 10
    ]
    refused = sum(request.code >= 400 for request in writes)
    return [
        scale.judge(figures.WRITES_PER_PARENT, len(writes) / parents),
        scale.judge(figures.READS_PER_PARENT, len(reads) / parents),
        *each,
        Figure(name="  writes that the API server refused", value=refused),
    ]


def _usage_figures(used: Usage, *, syncs: int) -> list[Figure]:
    cpu = [Figure(name=f"  CPU per sync, {name}", value=1_000 * used.cpu_seconds[name] / syncs, unit="ms") for name in SERVICES]
    others = [
        Figure(name=f"  CPU in all, {name}", value=seconds, unit="s") for name, seconds in used.cpu_seconds.items() if name not in SERVICES
    ]
    rss = [Figure(name=f"  resident, {name}", value=used.rss_bytes[name] / 2**20, unit="MiB") for name in SERVICES]
    return [*cpu, *others, *rss]
