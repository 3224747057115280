"""Nothing changes and all parents are resynced again and again: what a sync costs that has nothing to do."""

import asyncio

from bench import bounds
from bench.cost import cpu_each, in_namespace
from bench.figures import Figure
from bench.load import converge
from bench.run import Run
from bench.system import System

_RESYNC_SECONDS = 5
_WATCHED_SECONDS = 20.0


async def measure(run: Run) -> list[Figure]:
    """1,000 x 3, each parent resynced every five seconds."""
    count = run.of(1_000)
    async with System.start(run) as system:
        await system.create_controller(resyncPeriodSeconds=_RESYNC_SECONDS)
        await converge(system.cluster, [f"p{index}" for index in range(count)], children=3)
        await asyncio.sleep(2 * _RESYNC_SECONDS)
        await system.hook.forget_calls()
        mark, before = system.audit.mark(), system.usage()
        await asyncio.sleep(_WATCHED_SECONDS)
        used, syncs = system.usage().since(before), len(await system.hook.calls())
        requests = in_namespace(await system.audit.ours_since(mark))
    return [
        run.judge_cpu(bounds.RESYNC_CPU, used.ours_cpu_seconds / max(1, syncs)),
        run.judge(bounds.RESYNC_REQUESTS, len(requests)),
        *cpu_each(used, count=max(1, syncs), what="sync"),
        Figure(name="resyncs, of those due", value=syncs / (count * _WATCHED_SECONDS / _RESYNC_SECONDS)),
    ]
