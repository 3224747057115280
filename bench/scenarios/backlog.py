"""A thousand parents wait for a hook that is not quick: a fresh one is not to wait behind them."""

import time

from bench import figures
from bench.figures import Figure
from bench.population import change_parents, create_parents, following, is_settled
from bench.rig import Rig
from bench.scenarios.scale import Scale
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CONFIG_MAPS

_FRESH = ("fresh-a", "fresh-b", "fresh-c")


async def run(scale: Scale) -> list[Figure]:
    """1,000 x 3 changed, hook 50 ms; three fresh parents, one after another."""
    count = scale.of(1_000)
    names = [f"p{index}" for index in range(count)]
    async with Rig.start(scale.assets, profiles=scale.profiles) as rig:
        await rig.controller()
        async with following(rig.cluster, is_settled(children=3)) as follower:
            await create_parents(rig.cluster, names, children=3)
            await follower.reach(count)
        await rig.quiet()
        await rig.hook.delay(0.05)
        async with following(rig.cluster, is_settled(children=3, generation=2)) as follower:
            start = time.monotonic()
            await change_parents(rig.cluster, names, text="second")
            waits = [await _children_of_fresh(rig, name) for name in _FRESH]
            drained = await follower.reach(count) - start
    return [
        scale.judge(figures.BACKLOG, waits[0]),
        *[Figure(name=f"  then of {name}", value=wait, unit="s") for name, wait in zip(_FRESH[1:], waits[1:], strict=True)],
        Figure(name="backlog drained", value=drained, unit="s"),
    ]


async def _children_of_fresh(rig: Rig, name: str) -> float:
    """Seconds from a new parent to its last child."""

    def is_its_child(obj: JsonObject) -> bool:
        return unstructured.labels(obj).get("parent") == name

    async with following(rig.cluster, is_its_child, resource=CONFIG_MAPS) as follower:
        start = time.monotonic()
        await create_parents(rig.cluster, [name], children=3)
        return await follower.reach(3) - start
