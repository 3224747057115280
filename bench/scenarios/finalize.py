"""Parents with a finalize hook are deleted: first their children go, then our finalizer, then the parents."""

import time

from bench import bounds
from bench.cost import writes_of
from bench.figures import Figure
from bench.load import converge, counting, delete_parents
from bench.run import Run
from bench.system import System
from metaloop.devkit.testbed.cluster import Cluster


async def measure(run: Run) -> list[Figure]:
    """500 x 1, deleted as fast as the API server takes it."""
    names = [f"p{index}" for index in range(run.of(500))]
    async with System.start(run) as system:
        webhook = {"webhook": {"url": system.hook.sync_url}}
        await system.create_controller(hooks={"sync": webhook, "finalize": webhook})
        await converge(system.cluster, names, children=1)
        await system.quiet()
        await system.hook.forget_calls()
        mark = system.audit.mark()
        seconds = await _gone_after(system.cluster, names)
        calls = len(await system.hook.calls())
        requests = await system.audit.ours_since(mark)
    return [
        run.judge_seconds(bounds.FINALIZE, seconds),
        run.judge(bounds.FINALIZE_CALLS, calls / len(names)),
        run.judge(bounds.FINALIZE_WRITES, writes_of(requests) / len(names)),
    ]


async def _gone_after(cluster: Cluster, names: list[str]) -> float:
    """Seconds from the first deletion until the last parent is gone."""
    async with counting(cluster, lambda _: True, deleted=True) as gone:
        start = time.monotonic()
        await delete_parents(cluster, names)
        return await gone.reach(len(names)) - start
