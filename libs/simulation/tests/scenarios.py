"""Runs that known defects don't survive."""

import asyncio

from metaloop.common.json import JsonObject
from metaloop.simulation.faultplan import FaultPlan
from metaloop.simulation.network import BUS
from metaloop.simulation.resources import CONFIG_MAPS, ROUTES, THINGS
from metaloop.simulation.run import Result, run
from metaloop.simulation.stories import COMPOSITES, STORIES, Story, begin, controller, count_children, has, patience, texts, thing
from metaloop.simulation.webhooks import CallFate
from metaloop.simulation.world import World

_SLOW_SECONDS = 9.0
_VERY_SLOW_SECONDS = 30.0
"""Longer than a stopped worker is sent a job again that it does not take."""
_OUTAGE_SECONDS = 120.0
_FROZEN_SECONDS = 45.0
"""Longer than a kind that can't be watched may freeze its controllers."""


class SlowHooks(FaultPlan):
    """Each hook works for longer than a lease lasts."""

    def __init__(self, seconds: float = _SLOW_SECONDS) -> None:
        self._seconds = seconds

    def of_call(self, path: str) -> CallFate:
        del path
        return CallFate(seconds=self._seconds)

    def cease(self) -> None:
        self._seconds = 0.01


def swapped_rules() -> Result:
    """Somebody swaps two elements of a list without keys."""
    return run(STORIES["drift"], FaultPlan(), seed="1")


def stall_in_a_burst(step: int) -> Result:
    """Both watchers are stopped amid a burst of events, for longer than a watch may be silent."""

    async def act(world: World) -> None:
        await begin(world)
        await asyncio.sleep(2)
        for watcher in world.watchers:
            watcher.stall_after(step, 75.0)
        for number in range(130):
            world.create(CONFIG_MAPS, {"metadata": {"name": f"noise-{number}"}})
        await asyncio.sleep(80)
        world.patch(THINGS, "a", {"spec": {"text": "second"}})
        if world.get(CONFIG_MAPS, "a-0") is not None:
            world.delete(CONFIG_MAPS, "a-0")

    return run(Story(name="burst", act=act, problem=has(3, "second")), FaultPlan(), seed="1")


def cut_off_during_a_call() -> Result:
    """A reconciler loses the bus, but not the gateway, while its call is live for longer than its lease."""

    async def act(world: World) -> None:
        controller(world, {"sync": count_children})
        thing(world)
        await world.until(lambda: "" if world.webhooks.live else "no call", within_seconds=20)
        caller = world.webhooks.live[0].caller.partition("#")[0]
        port = world.processes[caller].port
        port.cut(BUS)
        await asyncio.sleep(2 * _SLOW_SECONDS)
        port.join(BUS)

    return run(Story(name="cut-off", act=act, problem=has(3, "first")), SlowHooks(), seed="1")


def stopped_during_a_call() -> Result:
    """A reconciler is stopped, for longer than its lease, while its call is live."""

    async def act(world: World) -> None:
        controller(world, {"sync": count_children})
        world.patch(COMPOSITES, "sets", {"spec": {"hooks": {"sync": {"webhook": {"timeout": "60s"}}}}})
        thing(world)
        await world.until(lambda: "" if world.webhooks.live else "no call", within_seconds=20)
        caller = world.webhooks.live[0].caller.partition("#")[0]
        world.processes[caller].stall(_VERY_SLOW_SECONDS)
        await asyncio.sleep(_VERY_SLOW_SECONDS)

    return run(Story(name="stopped", act=act, problem=has(3, "first")), SlowHooks(_VERY_SLOW_SECONDS), seed="1")


def outage_of_a_child_kind() -> Result:
    """One child kind answers 503 for minutes; children of the other kind, and a deletion, must not wait for its end."""

    async def act(world: World) -> None:
        both = [_rule(CONFIG_MAPS.api_version, "configmaps"), _rule(ROUTES.api_version, "routes")]
        controller(world, {"sync": count_children})
        world.patch(COMPOSITES, "sets", {"spec": {"childResources": [*both]}})
        thing(world)
        await patience(world, has(3, "first"))
        world.api.break_resource(ROUTES.id, 503)
        await asyncio.sleep(_FROZEN_SECONDS)
        world.patch(THINGS, "a", {"spec": {"text": "second"}})
        await asyncio.sleep(15)
        if set(texts(world).values()) != {"second"}:
            world.history.violation(f"children wait for another kind: {texts(world)}")
        await asyncio.sleep(_OUTAGE_SECONDS - _FROZEN_SECONDS)
        world.api.mend_resource(ROUTES.id)

    return run(Story(name="outage", act=act, problem=has(3, "second")), FaultPlan(), seed="1")


def _rule(api_version: str, resource: str) -> JsonObject:
    return {"apiVersion": api_version, "resource": resource, "updateStrategy": {"method": "InPlace"}}
