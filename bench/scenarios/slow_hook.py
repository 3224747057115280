"""A hook that takes its time: waiting for it must cost neither slots nor CPU."""

from bench import bounds
from bench.cost import cpu_each
from bench.figures import Figure, Raw
from bench.load import converge
from bench.run import Run
from bench.system import System

_HOOK_SECONDS = 0.2


async def measure(run: Run) -> list[Figure]:
    """500 x 1 with a hook that answers at once, then 500 x 1 with 200 ms for each call."""
    count = run.of(500)
    async with System.start(run) as system:
        await system.create_controller()
        await converge(system.cluster, [f"warm-up-{index}" for index in range(count)], children=1)
        quick = await converge(system.cluster, [f"quick-{index}" for index in range(count)], children=1)
        await system.quiet()
        await system.hook.forget_calls()
        await system.hook.delay(_HOOK_SECONDS)
        before = system.usage()
        slow = await converge(system.cluster, [f"slow-{index}" for index in range(count)], children=1)
        await system.quiet()
        used, calls = system.usage().since(before), len(await system.hook.calls())
    return [
        run.judge(bounds.SLOW_HOOK, slow / quick, raw=Raw(value=slow, unit="s")),
        run.judge(bounds.SLOW_HOOK_CALLS, calls / count),
        Figure(name="500 x 1 with a quick hook", value=quick, unit="s"),
        *cpu_each(used, count=count, what="parent"),
    ]
