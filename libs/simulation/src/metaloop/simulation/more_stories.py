"""More stories, for seeds alone: several shards, hooks that answer differently each time, and many parents at once."""

import asyncio
from collections.abc import Mapping
from typing import Final

from metaloop.common.api.kinds import KINDS
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.simulation.resources import CONFIG_MAPS, THINGS
from metaloop.simulation.stories import (
    STORIES,
    Problem,
    Story,
    all_of,
    config_map,
    controller,
    count_children,
    has,
    hook_of,
    patience,
    thing,
)
from metaloop.simulation.world import Size, World

DECORATORS: Final = KINDS["DecoratorController"].resource
MANY: Final = tuple(f"p{number}" for number in range(12))
_FICKLE_SECONDS: Final = 3.0
_ROUNDS: Final = 20


# -- two controllers of one parent, in two shards ----------------------------------------------------------------------


def tag(request: JsonObject) -> JsonObject:
    """A label with the object's text, and a ConfigMap with it as an attachment."""
    obj = unstructured.child_object(request, "object")
    name, text = unstructured.name(obj), unstructured.text(unstructured.child_object(obj, "spec"), "text")
    return {"labels": {"tag": text}, "attachments": [config_map(f"{name}-tag", parent=f"{name}-tag", text=text)]}


def decorator(world: World) -> None:
    """Create the DecoratorController `tags` of Things."""
    attachment: JsonObject = {"apiVersion": "v1", "resource": CONFIG_MAPS.resource, "updateStrategy": {"method": "InPlace"}}
    spec: JsonObject = {
        "resources": [{"apiVersion": THINGS.api_version, "resource": THINGS.resource}],
        "attachments": [attachment],
        "hooks": {"sync": hook_of(world, "sync", tag, path="/tags")},
    }
    world.create(DECORATORS, {"metadata": {"name": "tags"}, "spec": spec})


def tagged(text: str) -> Problem:
    """Whether `a` has the label and the attachment."""

    def problem(world: World) -> str:
        labels = unstructured.labels(world.get(THINGS, "a") or {})
        attached = unstructured.text(unstructured.child_object(world.get(CONFIG_MAPS, "a-tag") or {}, "data"), "text")
        found = (labels.get("tag", ""), attached)
        return "" if found == (text, text) else f"the tags of a are {found}, and should be {text}"

    return problem


async def _shards(world: World) -> None:
    controller(world, {"sync": count_children})
    decorator(world)
    thing(world)
    await patience(world, all_of(has(3, "first"), tagged("first")))
    world.patch(THINGS, "a", {"spec": {"text": "second"}})
    await patience(world, all_of(has(3, "second"), tagged("second")))


# -- a hook without a will of its own ----------------------------------------------------------------------------------


class FickleHook:
    """Wants one child more or less, and another text, each time that it is asked the same; until it is `settled`."""

    def __init__(self) -> None:
        self.is_settled = False
        self._asked = 0

    def __call__(self, request: JsonObject) -> JsonObject:
        """The answer."""
        self._asked += 1
        if self.is_settled:
            return count_children(request)
        parent = unstructured.child_object(request, "parent")
        spec = unstructured.child_object(parent, "spec")
        mood: JsonObject = {"count": unstructured.integer(spec, "count") - self._asked % 2, "text": f"mood {self._asked % 3}"}
        return count_children({**request, "parent": {**parent, "spec": {**spec, **mood}}})


async def _fickle(world: World) -> None:
    hook = FickleHook()
    controller(world, {"sync": hook})
    thing(world)
    await asyncio.sleep(_FICKLE_SECONDS + world.plan.pause_seconds())
    hook.is_settled = True
    world.patch(THINGS, "a", {"spec": {"text": "second"}})
    await patience(world, has(3, "second"))


# -- many parents, one of which never rests ----------------------------------------------------------------------------


async def _many_parents(world: World) -> None:
    controller(world, {"sync": count_children})
    for name in MANY:
        thing(world, name, count=1)
    await patience(world, all_of(*(has(1, "first", parent=name) for name in MANY)))
    for number in range(_ROUNDS):
        world.patch(THINGS, MANY[0], {"spec": {"text": f"round {number}"}})
        if number == _ROUNDS // 2:
            for name in MANY[1:]:
                world.patch(THINGS, name, {"spec": {"text": "second"}})
        await asyncio.sleep(0.1)
    world.patch(THINGS, MANY[0], {"spec": {"text": "second"}})
    await patience(world, all_of(*(has(1, "second", parent=name) for name in MANY)))


ALL_STORIES: Final[Mapping[str, Story]] = {
    **STORIES,
    "shards": Story(name="shards", act=_shards, problem=all_of(has(3, "second"), tagged("second")), size=Size(watchers=4, shards=2)),
    "fickle-hook": Story(name="fickle-hook", act=_fickle, problem=has(3, "second")),
    "many-parents": Story(name="many-parents", act=_many_parents, problem=all_of(*(has(1, "second", parent=name) for name in MANY))),
}
"""The stories that are tried with a crash at each point, too, and those that only seeds choose."""
