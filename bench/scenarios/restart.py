"""All services are killed and started again while nothing changes: all parents are synced, and nothing is written."""

import asyncio
import time

from bench import bounds
from bench.cost import writes_of
from bench.figures import Figure
from bench.load import converge
from bench.run import Run
from bench.system import System

_POLL_SECONDS = 0.05


async def measure(run: Run) -> list[Figure]:
    """1,000 x 3; the services are killed, not asked to stop."""
    count = run.of(1_000)
    async with System.start(run) as system:
        await system.create_controller()
        await converge(system.cluster, [f"p{index}" for index in range(count)], children=3)
        await system.quiet()
        for service in system.stack.services:
            await service.kill()
        await system.hook.forget_calls()
        mark, start = system.audit.mark(), time.monotonic()
        await _start_services(system)
        ready = time.monotonic() - start
        seconds = await _all_called(system, count) - start
        await system.quiet()
        requests, calls = await system.audit.ours_since(mark), len(await system.hook.calls())
    return [
        run.judge_seconds(bounds.RESTART, seconds),
        run.judge(bounds.RESTART_WRITES, writes_of(requests)),
        run.judge(bounds.RESTART_CALLS, calls / count),
        Figure(name="until all processes were ready", value=ready, unit="s"),
    ]


async def _start_services(system: System) -> None:
    async with asyncio.TaskGroup() as tasks:
        for service in system.stack.services:
            tasks.create_task(service.start())


async def _all_called(system: System, count: int) -> float:
    """Wait until the hook was called for each parent; when the last of them had its first call."""
    while True:
        first: dict[str, float] = {}
        for call in await system.hook.calls():
            first.setdefault(call.parent, call.at)
        if len(first) >= count:
            return max(first.values())
        await asyncio.sleep(_POLL_SECONDS)
