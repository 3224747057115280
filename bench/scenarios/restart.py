"""All services are killed and started again, with nothing changed: all parents are synced, and nothing is written."""

import asyncio
import time

from bench import figures
from bench.figures import Figure
from bench.population import create_parents, following, is_settled
from bench.rig import NAMESPACE, Rig
from bench.scenarios.scale import Scale

_POLL_SECONDS = 0.05


async def run(scale: Scale) -> list[Figure]:
    """1,000 x 3; the services are killed, not asked to stop."""
    count = scale.of(1_000)
    async with Rig.start(scale.assets, profiles=scale.profiles) as rig:
        await rig.controller()
        async with following(rig.cluster, is_settled(children=3)) as follower:
            await create_parents(rig.cluster, [f"p{index}" for index in range(count)], children=3)
            await follower.reach(count)
        await rig.quiet()
        for service in rig.stack.services:
            await service.kill()
        await rig.hook.forget_calls()
        mark, start = rig.audit.mark(), time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for service in rig.stack.services:
                tasks.create_task(service.start())
        ready = time.monotonic() - start
        seconds = await _all_asked(rig, count) - start
        await rig.quiet()
        requests = [request for request in rig.audit.ours_since(mark) if request.namespace == NAMESPACE]
        calls = len(await rig.hook.calls())
    return [
        scale.judge(figures.RESTART, seconds),
        Figure(name="  of it until all processes were ready", value=ready, unit="s"),
        scale.judge(figures.RESTART_WRITES, sum(request.is_write for request in requests)),
        Figure(name="hook calls per parent", value=calls / count),
    ]


async def _all_asked(rig: Rig, count: int) -> float:
    """When the hook had been asked about each parent."""
    while True:
        calls = await rig.hook.calls()
        first: dict[str, float] = {}
        for call in calls:
            first.setdefault(call.parent, call.at)
        if len(first) >= count:
            return max(first.values())
        await asyncio.sleep(_POLL_SECONDS)
