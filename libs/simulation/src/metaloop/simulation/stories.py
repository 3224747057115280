"""Thirteen stories: what users do, and what is true in the end, whatever went wrong meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from metaloop.common.api.kinds import KINDS
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.objects.resource import ResourceInfo
from metaloop.simulation import map_story
from metaloop.simulation.resources import CONFIG_MAPS, NAMESPACE, ROUTES, THINGS
from metaloop.simulation.webhooks import Hook
from metaloop.simulation.world import Size, World
from metaloop.watcher.served import CRDS

COMPOSITES: Final = KINDS["CompositeController"].resource
_PATIENCE_SECONDS: Final = 12.0
"""How long a user waits for an effect before the next change."""

Problem: TypeAlias = Callable[[World], str]
"""What is not yet as it should be; empty when everything is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What users do, and what comes of it."""

    name: str
    act: Callable[[World], Awaitable[None]]
    problem: Problem
    size: Size = field(default_factory=Size)


# -- hooks -------------------------------------------------------------------------------------------------------------


def config_map(name: str, *, parent: str, text: str) -> JsonObject:
    """A desired child."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"parent": parent}},
        "data": {"text": text},
    }


def count_children(request: JsonObject) -> JsonObject:
    """`spec.count` ConfigMaps with `spec.text`, and the number of those that are there as the status."""
    parent = unstructured.child_object(request, "parent")
    spec, name = unstructured.child_object(parent, "spec"), unstructured.name(parent)
    observed = unstructured.child_object(unstructured.child_object(request, "children"), "ConfigMap.v1")
    text = unstructured.text(spec, "text")
    children = [config_map(f"{name}-{number}", parent=name, text=text) for number in range(unstructured.integer(spec, "count"))]
    return {"status": {"children": len(observed)}, "children": [*children]}


def emphatic(request: JsonObject) -> JsonObject:
    """As `count_children`, with an exclamation mark behind each text."""
    answer = count_children(request)
    for child in unstructured.child_objects(answer, "children"):
        data = unstructured.child_object(child, "data")
        data["text"] = f"{data['text']}!"
    return answer


def finalize(request: JsonObject) -> JsonObject:
    """No children; finalized when none is left."""
    observed = unstructured.child_object(unstructured.child_object(request, "children"), "ConfigMap.v1")
    return {"status": {"children": len(observed)}, "children": [], "finalized": not observed}


def ask_for_source(_: JsonObject) -> JsonObject:
    """The related ConfigMap `source`."""
    return {"relatedResources": [{"apiVersion": "v1", "resource": "configmaps", "namespace": NAMESPACE, "names": ["source"]}]}


def copy_source(request: JsonObject) -> JsonObject:
    """A ConfigMap with the text of the related one."""
    parent = unstructured.child_object(request, "parent")
    related = unstructured.child_object(unstructured.child_object(request, "related"), "ConfigMap.v1")
    texts = [unstructured.text(unstructured.child_object(each, "data"), "text") for each in related.values() if isinstance(each, dict)]
    name = unstructured.name(parent)
    return {
        "status": {"found": len(texts)},
        "children": [config_map(f"{name}-{number}", parent=name, text=text) for number, text in enumerate(texts)],
    }


ROUTE_RULES: Final[list[JsonObject]] = [{"match": "canary", "route": "v2"}, {"route": "v1"}]
"""A list without keys: what a rule means depends on all of its fields together."""


def route(request: JsonObject) -> JsonObject:
    """One Route with a list of rules."""
    name = unstructured.name(unstructured.child_object(request, "parent"))
    metadata: JsonObject = {"name": f"{name}-route", "namespace": NAMESPACE, "labels": {"parent": name}}
    child: JsonObject = {"apiVersion": ROUTES.api_version, "kind": "Route", "metadata": metadata, "spec": {"rules": [*ROUTE_RULES]}}
    return {"status": {}, "children": [child]}


# -- what users do -----------------------------------------------------------------------------------------------------


def controller(world: World, hooks: Mapping[str, Hook], *, children: ResourceInfo = CONFIG_MAPS, method: str = "InPlace") -> None:
    """Create the CompositeController `sets` of Things."""
    rule: JsonObject = {"apiVersion": children.api_version, "resource": children.resource, "updateStrategy": {"method": method}}
    spec: JsonObject = {
        "parentResource": {"apiVersion": THINGS.api_version, "resource": THINGS.resource},
        "childResources": [rule],
        "hooks": {name: hook_of(world, name, hook) for name, hook in hooks.items()},
    }
    world.create(COMPOSITES, {"metadata": {"name": "sets"}, "spec": spec})


def hook_of(world: World, name: str, hook: Hook, *, path: str = "/sets") -> JsonObject:
    """The spec of a hook."""
    return {"webhook": {"url": world.webhooks.url(f"{path}/{name}", hook), "timeout": "10s"}}


def thing(world: World, name: str = "a", *, count: int = 3, text: str = "first") -> None:
    """Create a parent."""
    selector: JsonObject = {"matchLabels": {"parent": name}}
    world.create(THINGS, {"metadata": {"name": name}, "spec": {"count": count, "text": text, "selector": selector}})


def texts(world: World, parent: str = "a") -> dict[str, str]:
    """The text of each child of a parent."""
    children = world.all(CONFIG_MAPS, {"parent": parent})
    return {name: unstructured.text(unstructured.child_object(child, "data"), "text") for name, child in children.items()}


def has(count: int, text: str, *, parent: str = "a") -> Problem:
    """Whether a parent has so many children with a text, owns them all, and its status counts them."""

    def problem(world: World) -> str:
        found, wanted = texts(world, parent), {f"{parent}-{number}": text for number in range(count)}
        if found != wanted:
            return f"the children of {parent} are {found}, and should be {wanted}"
        owner = world.get(THINGS, parent)
        if owner is None:
            return f"{parent} is gone"
        counted = unstructured.child_object(owner, "status").get("children")
        if counted != count:
            return f"the status of {parent} counts {counted} of {count} children"
        owners = {getattr(controller_ref(child), "uid", "") for child in world.all(CONFIG_MAPS, {"parent": parent}).values()}
        return "" if owners <= {unstructured.uid(owner)} else f"the children of {parent} belong to {sorted(owners)}"

    return problem


async def patience(world: World, problem: Problem) -> None:
    """Wait until there is no problem, or as long as a user does."""
    await world.until(lambda: problem(world), within_seconds=_PATIENCE_SECONDS)
    await asyncio.sleep(world.plan.pause_seconds())


async def begin(world: World) -> None:
    """The controller `sets`, and a parent with three children."""
    controller(world, {"sync": count_children})
    thing(world)
    await patience(world, has(3, "first"))


async def _create(world: World) -> None:
    controller(world, {"sync": count_children})
    await asyncio.sleep(1)
    for name in ("a", "b", "c"):
        thing(world, name)
    await patience(world, all_of(has(3, "first"), has(3, "first", parent="b"), has(3, "first", parent="c")))


async def _change(world: World) -> None:
    await begin(world)
    world.patch(THINGS, "a", {"spec": {"text": "second"}})
    await patience(world, has(3, "second"))
    world.patch(THINGS, "a", {"spec": {"count": 1}})
    await patience(world, has(1, "second"))
    world.patch(THINGS, "a", {"spec": {"count": 4, "text": "third"}})
    await patience(world, has(4, "third"))


async def _drift(world: World) -> None:
    controller(world, {"sync": route}, children=ROUTES)
    thing(world)
    await patience(world, _routes_as_desired)
    if world.get(ROUTES, "a-route") is not None:
        world.delete(ROUTES, "a-route")
        await patience(world, _routes_as_desired)
    if world.get(ROUTES, "a-route") is not None:
        world.patch(ROUTES, "a-route", {"spec": {"rules": [*reversed(ROUTE_RULES)]}})
    await patience(world, _routes_as_desired)


def _routes_as_desired(world: World) -> str:
    found = world.get(ROUTES, "a-route")
    rules = unstructured.child_object(found, "spec").get("rules") if found else None
    return "" if rules == ROUTE_RULES else f"the rules are {rules}"


async def _finalize(world: World) -> None:
    controller(world, {"sync": count_children, "finalize": finalize})
    thing(world)
    await patience(world, has(3, "first"))
    world.delete(THINGS, "a")
    await patience(world, _all_gone)


def _all_gone(world: World) -> str:
    left = [*world.all(THINGS), *world.all(CONFIG_MAPS, {"parent": "a"})]
    return f"{left} are left" if left else ""


async def _adoption(world: World) -> None:
    for number in range(2):
        world.create(CONFIG_MAPS, config_map(f"a-{number}", parent="a", text="found"))
    await begin(world)


async def _release(world: World) -> None:
    await begin(world)
    if world.get(CONFIG_MAPS, "a-2") is not None:
        world.patch(CONFIG_MAPS, "a-2", {"metadata": {"labels": {"parent": None, "kept": "yes"}}})
    world.patch(THINGS, "a", {"spec": {"count": 2}})
    await patience(world, _released)


def _released(world: World) -> str:
    kept = world.all(CONFIG_MAPS, {"kept": "yes"})
    if any(controller_ref(each) is not None for each in kept.values()):
        return "a-2 is not released"
    return has(2, "first")(world)


async def _rolling(world: World) -> None:
    controller(world, {"sync": count_children}, method="RollingInPlace")
    thing(world)
    await patience(world, has(3, "first"))
    world.patch(THINGS, "a", {"spec": {"text": "second"}})
    await patience(world, has(3, "second"))


async def _customize(world: World) -> None:
    world.create(CONFIG_MAPS, {"metadata": {"name": "source"}, "data": {"text": "one"}})
    controller(world, {"sync": copy_source, "customize": ask_for_source})
    thing(world)
    await patience(world, _copied("one"))
    world.patch(CONFIG_MAPS, "source", {"data": {"text": "two"}})
    await patience(world, _copied("two"))


def _copied(text: str) -> Problem:
    return lambda world: "" if texts(world) == {"a-0": text} else f"the copies are {texts(world)}, and should be {text}"


async def _controller_edit(world: World) -> None:
    await begin(world)
    world.patch(COMPOSITES, "sets", {"spec": {"hooks": {"sync": hook_of(world, "sync", emphatic, path="/edited")}}})
    await patience(world, has(3, "first!"))


async def _crd_change(world: World) -> None:
    crd = _crd()
    world.create(CRDS, crd)
    await begin(world)
    world.patch(CRDS, unstructured.name(crd), {"metadata": {"annotations": {"edited": "yes"}}})
    world.api.break_resource(THINGS.id, 404)
    await asyncio.sleep(0.2)
    world.api.mend_resource(THINGS.id)
    world.patch(THINGS, "a", {"spec": {"text": "second"}})
    await patience(world, has(3, "second"))


def _crd() -> JsonObject:
    version: JsonObject = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "metadata": {"name": f"{THINGS.resource}.{THINGS.group}"},
        "spec": {
            "group": THINGS.group,
            "scope": "Namespaced",
            "names": {"plural": THINGS.resource, "kind": THINGS.kind},
            "versions": [version],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }


async def _failover(world: World) -> None:
    await begin(world)
    world.patch(THINGS, "a", {"spec": {"text": "second"}})
    for watcher in world.watchers[:1]:
        watcher.crash()
    await asyncio.sleep(1)
    world.patch(THINGS, "a", {"spec": {"count": 2}})
    await patience(world, has(2, "second"))


async def _scale_in(world: World) -> None:
    controller(world, {"sync": count_children})
    await asyncio.sleep(1)
    for name in ("a", "b", "c", "d"):
        thing(world, name, count=2)
    await asyncio.sleep(0.05)
    for reconciler in world.reconcilers[1:]:
        await reconciler.stop()
    await patience(world, all_of(*(has(2, "first", parent=name) for name in ("a", "b", "c", "d"))))


def all_of(*problems: Problem) -> Problem:
    """What is not yet as it should be of several things."""
    return lambda world: next((found for each in problems if (found := each(world))), "")


STORIES: Final[Mapping[str, Story]] = {
    story.name: story
    for story in (
        Story(name="create", act=_create, problem=all_of(*(has(3, "first", parent=name) for name in ("a", "b", "c")))),
        Story(name="change", act=_change, problem=has(4, "third")),
        Story(name="drift", act=_drift, problem=_routes_as_desired),
        Story(name="finalize", act=_finalize, problem=_all_gone),
        Story(name="adoption", act=_adoption, problem=has(3, "first")),
        Story(name="release", act=_release, problem=_released),
        Story(name="rolling-update", act=_rolling, problem=has(3, "second")),
        Story(name="customize", act=_customize, problem=_copied("two")),
        Story(name="controller-edit", act=_controller_edit, problem=has(3, "first!")),
        Story(name="crd-change", act=_crd_change, problem=has(3, "second")),
        Story(name="failover", act=_failover, problem=has(2, "second")),
        Story(name="scale-in", act=_scale_in, problem=all_of(*(has(2, "first", parent=name) for name in ("a", "b", "c", "d")))),
        Story(name="map", act=map_story.act, problem=map_story.problem),
    )
}
