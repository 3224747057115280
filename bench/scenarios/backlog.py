"""A thousand parents wait for a hook that is not quick: a fresh parent must not wait behind them."""

import time

from bench import bounds
from bench.figures import Figure, Raw
from bench.load import change_parents, converge, counting, create_parents, is_settled, seconds_to_children
from bench.run import Run
from bench.system import System
from metaloop.devkit.testbed.cluster import Cluster

_FRESH = ("fresh-a", "fresh-b", "fresh-c")
_HOOK_SECONDS = 0.05


async def measure(run: Run) -> list[Figure]:
    """1,000 x 3 changed with a hook of 50 ms; meanwhile three fresh parents, one after another."""
    names = [f"p{index}" for index in range(run.of(1_000))]
    async with System.start(run) as system:
        await system.create_controller()
        await converge(system.cluster, names, children=3)
        await system.quiet()
        await system.hook.delay(_HOOK_SECONDS)
        async with counting(system.cluster, is_settled(children=3, generation=2)) as changed:
            start = time.monotonic()
            await change_parents(system.cluster, names, text="second")
            waits = [await _fresh(system.cluster, name) for name in _FRESH]
            drained = await changed.reach(len(names)) - start
    return [
        run.judge(bounds.BACKLOG, max(waits) / drained, raw=Raw(value=max(waits), unit="s")),
        *[Figure(name=f"  children of {name}", value=wait, unit="s") for name, wait in zip(_FRESH, waits, strict=True)],
        Figure(name="all changed parents followed", value=drained, unit="s"),
    ]


async def _fresh(cluster: Cluster, name: str) -> float:
    """Seconds from a new parent to its last child."""
    return await seconds_to_children(cluster, name, lambda: create_parents(cluster, [name], children=3))
