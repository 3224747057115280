"""A hook that takes its time: waiting for it must cost neither slots nor CPU."""

import time

from bench import figures
from bench.figures import Figure
from bench.population import create_parents, following, is_settled
from bench.rig import Rig
from bench.scenarios.scale import Scale


async def run(scale: Scale) -> list[Figure]:
    """500 x 1 with 200 ms a call."""
    count = scale.of(500)
    async with Rig.start(scale.assets, profiles=scale.profiles) as rig:
        await rig.controller()
        await rig.hook.delay(0.2)
        async with following(rig.cluster, is_settled(children=1)) as follower:
            start = time.monotonic()
            await create_parents(rig.cluster, [f"p{index}" for index in range(count)], children=1)
            seconds = await follower.reach(count) - start
        await rig.quiet()
        calls = len(await rig.hook.calls())
    return [scale.judge(figures.SLOW_HOOK, seconds), Figure(name="hook calls per parent", value=calls / count)]
