"""One parent changes while nothing else goes on: how soon the hook is asked, and how soon the children have followed."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench import figures
from bench.figures import Figure
from bench.population import create_parents, following, is_settled
from bench.rig import NAMESPACE, PARENTS, Rig
from bench.scenarios.scale import Scale
from metaloop.common.json import JsonObject
from metaloop.common.objects.unstructured import child_object, text
from metaloop.devkit.testbed.cluster import CONFIG_MAPS

_PARENTS = 50

# What a change causes after its children, a status and one more sync, is not to meet the next change.
_PAUSE_SECONDS = 0.03


@dataclass(slots=True, kw_only=True)
class Round:
    """One change: of which parent, and when what happened."""

    parent: str
    text: str
    sent: float = 0.0
    acknowledged: float = 0.0
    followed: float = 0.0


async def run(scale: Scale) -> list[Figure]:
    """400 changes, one after another, each of another parent than the one before."""
    names = [f"p{index}" for index in range(_PARENTS)]
    rounds = [Round(parent=names[index % _PARENTS], text=f"change {index}") for index in range(scale.of(400))]
    async with Rig.start(scale.assets, profiles=scale.profiles) as rig:
        await rig.controller()
        async with following(rig.cluster, is_settled(children=3)) as follower:
            await create_parents(rig.cluster, names, children=3)
            await follower.reach(_PARENTS)
        await rig.quiet()
        await rig.hook.forget_calls()
        await _play(rig, rounds)
        calls = await rig.hook.calls()
    asked = [min(call.at for call in calls if call.parent == each.parent and call.at > each.sent) - each.acknowledged for each in rounds]
    followed = [each.followed - each.acknowledged for each in rounds]
    return [
        scale.judge(figures.HOOK_P50, _percentile(asked, 50)),
        Figure(name="  p90", value=_percentile(asked, 90), unit="ms"),
        scale.judge(figures.HOOK_P99, _percentile(asked, 99)),
        scale.judge(figures.CHILDREN_P50, _percentile(followed, 50)),
        Figure(name="  p90", value=_percentile(followed, 90), unit="ms"),
        scale.judge(figures.CHILDREN_P99, _percentile(followed, 99)),
    ]


async def _play(rig: Rig, rounds: Sequence[Round]) -> None:
    """Make each change, and note its times; the children are seen from one watch that is open all the while."""
    wanted = ""

    def has_followed(obj: JsonObject) -> bool:
        return text(child_object(obj, "data"), "text") == wanted

    async with following(rig.cluster, has_followed, resource=CONFIG_MAPS) as follower:
        for each in rounds:
            wanted = each.text
            follower.forget()
            each.sent = time.monotonic()
            await rig.cluster.patch(PARENTS, NAMESPACE, each.parent, {"spec": {"text": each.text}})
            each.acknowledged = time.monotonic()
            each.followed = await follower.reach(3)
            await asyncio.sleep(_PAUSE_SECONDS)


def _percentile(seconds: Sequence[float], percent: int) -> float:
    """In milliseconds."""
    ordered = sorted(seconds)
    return 1_000 * ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
