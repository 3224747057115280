"""Nothing changes, and parents are resynced all the same: what a sync costs that has nothing to do."""

import asyncio

from bench import figures
from bench.figures import Figure
from bench.population import create_parents, following, is_settled
from bench.rig import NAMESPACE, Rig
from bench.scenarios.scale import Scale
from bench.usage import SERVICES

_RESYNC_SECONDS = 5
_WATCHED_SECONDS = 20.0


async def run(scale: Scale) -> list[Figure]:
    """1,000 x 3, each resynced every few seconds."""
    count = scale.of(1_000)
    async with Rig.start(scale.assets, profiles=scale.profiles) as rig:
        await rig.controller(resyncPeriodSeconds=_RESYNC_SECONDS)
        async with following(rig.cluster, is_settled(children=3)) as follower:
            await create_parents(rig.cluster, [f"p{index}" for index in range(count)], children=3)
            await follower.reach(count)
        await asyncio.sleep(2 * _RESYNC_SECONDS)
        await rig.hook.forget_calls()
        mark, before = rig.audit.mark(), rig.usage()
        await asyncio.sleep(_WATCHED_SECONDS)
        used, syncs = rig.usage().since(before), len(await rig.hook.calls())
        requests = [request for request in rig.audit.ours_since(mark) if request.namespace == NAMESPACE]
    return [
        scale.judge(figures.CPU_AT_REST, 1_000 * used.ours_cpu_seconds / max(1, syncs)),
        *[Figure(name=f"  {name}", value=1_000 * used.cpu_seconds[name] / max(1, syncs), unit="ms") for name in SERVICES],
        scale.judge(figures.REQUESTS_AT_REST, len(requests)),
        Figure(name="resyncs, of those due", value=syncs / (count * _WATCHED_SECONDS / _RESYNC_SECONDS)),
    ]
