"""One parent changes while nothing else goes on: how soon the hook is asked, and how soon the children have followed."""

import asyncio
import time
from collections.abc import Sequence

from bench import figures
from bench.figures import Figure
from bench.population import create_parents, following, is_settled
from bench.rig import NAMESPACE, PARENTS, Rig
from bench.scenarios.scale import Scale
from metaloop.common.json import JsonObject
from metaloop.common.objects.unstructured import child_object, text
from metaloop.devkit.testbed.cluster import CONFIG_MAPS

_PARENTS = 50


async def run(scale: Scale) -> list[Figure]:
    """400 changes, one after another, each of another parent than the one before."""
    names = [f"p{index}" for index in range(_PARENTS)]
    async with Rig.start(scale.assets) as rig:
        await rig.controller()
        async with following(rig.cluster, is_settled(children=3)) as follower:
            await create_parents(rig.cluster, names, children=3)
            await follower.reach(_PARENTS)
        await rig.quiet()
        await rig.hook.forget_calls()
        rounds = [await _change_one(rig, names[index % _PARENTS], mark=f"change {index}") for index in range(scale.of(400))]
        calls = await rig.hook.calls()
    asked = [
        min(call.at for call in calls if call.parent == name and call.at > sent) - acknowledged for name, sent, acknowledged, _ in rounds
    ]
    followed = [done - acknowledged for _, _, acknowledged, done in rounds]
    return [
        scale.judge(figures.HOOK_P50, _percentile(asked, 50)),
        Figure(name="  p90", value=_percentile(asked, 90), unit="ms"),
        scale.judge(figures.HOOK_P99, _percentile(asked, 99)),
        scale.judge(figures.CHILDREN_P50, _percentile(followed, 50)),
        Figure(name="  p90", value=_percentile(followed, 90), unit="ms"),
        scale.judge(figures.CHILDREN_P99, _percentile(followed, 99)),
    ]


async def _change_one(rig: Rig, name: str, *, mark: str) -> tuple[str, float, float, float]:
    """The parent, when its change was sent and acknowledged, and when the last of its children was seen to have followed."""

    def has_followed(obj: JsonObject) -> bool:
        return text(child_object(obj, "data"), "text") == mark

    async with following(rig.cluster, has_followed, resource=CONFIG_MAPS) as follower:
        sent = time.monotonic()
        await rig.cluster.patch(PARENTS, NAMESPACE, name, {"spec": {"text": mark}})
        acknowledged = time.monotonic()
        done = await follower.reach(3)
    # What the change caused after its children, a status and one more sync, is not to meet the next change.
    await asyncio.sleep(0.03)
    return name, sent, acknowledged, done


def _percentile(seconds: Sequence[float], percent: int) -> float:
    """In milliseconds."""
    ordered = sorted(seconds)
    return 1_000 * ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
