"""The story of a MapController: inputs come, change, lose their label and vanish, while the leading watcher crashes.

Inputs and outputs are ConfigMaps. A parent selects the inputs by a label; the tombstone hook keeps the outputs of
inputs that are gone until the parent says otherwise.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from metaloop.common.api import MAP_CONTROLLER_ANNOTATION, MAP_KEY
from metaloop.common.api.kinds import KINDS
from metaloop.common.json import JsonObject, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.simulation.resources import CONFIG_MAPS, NAMESPACE, THINGS
from metaloop.simulation.webhooks import Hook
from metaloop.simulation.world import World

MAPS: Final = KINDS["MapController"].resource
_PATIENCE_SECONDS: Final = 12.0
_NAME, _PARENT, _LABELS = "copies", "a", {"input": "yes"}
_KEEPS, _LETS_GO = "keep", "let go"

Texts: TypeAlias = Mapping[str, str]
"""The texts of outputs, by the names of their inputs."""


def copy_input(request: JsonObject) -> JsonObject:
    """One ConfigMap with the text of the input."""
    source = unstructured.child_object(request, "input")
    metadata: JsonObject = {"name": f"{unstructured.name(source)}-copy", "namespace": NAMESPACE}
    return {"outputs": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": source.get("data")}]}


def keep_outputs(request: JsonObject) -> JsonObject:
    """All outputs of an input that is gone, or none if the parent lets them go."""
    spec = unstructured.child_object(unstructured.child_object(request, "parent"), "spec")
    if unstructured.text(spec, "tombstones") == _LETS_GO:
        return {"outputs": []}
    groups = unstructured.child_object(request, "outputs").values()
    return {"outputs": [each for group in groups if is_object(group) for each in group.values()]}


async def act(world: World) -> None:
    """Map three inputs; crash the leader while they change; let go what is kept of those that are gone."""
    _install(world)
    for name in ("one", "two", "three"):
        _input(world, name, text="first")
    await _patience(world, mapped(dict.fromkeys(("one", "two", "three"), "first"), inputs=3))
    world.patch(CONFIG_MAPS, "one", {"data": {"text": "second"}})
    for watcher in world.watchers[:1]:
        watcher.crash()
    world.delete(CONFIG_MAPS, "two")
    await asyncio.sleep(1)
    _input(world, "four", text="first")
    world.patch(CONFIG_MAPS, "three", {"metadata": {"labels": {"input": None}}})
    await _patience(world, mapped({"one": "second", "two": "first", "three": "first", "four": "first"}, inputs=2))
    world.patch(THINGS, _PARENT, {"spec": {"tombstones": _LETS_GO}})
    await _patience(world, problem)


def mapped(texts: Texts, *, inputs: int) -> Callable[[World], str]:
    """What is wrong unless there are outputs with these texts, each of its parent, and the status counts them."""

    def found_problem(world: World) -> str:
        outputs = _outputs(world)
        found = {name: unstructured.text(unstructured.child_object(output, "data"), "text") for name, output in outputs.items()}
        wanted = {f"{name}-copy": text for name, text in texts.items()}
        if found != wanted:
            return f"the outputs are {found}, and should be {wanted}"
        return _wrong_marks(world, outputs) or _wrong_status(world, inputs=inputs, outputs=len(texts))

    return found_problem


problem: Final = mapped({"one": "second", "four": "first"}, inputs=2)
"""What is wrong in the end."""


def _install(world: World) -> None:
    maps: JsonObject = {"apiVersion": CONFIG_MAPS.api_version, "resource": CONFIG_MAPS.resource}
    spec: JsonObject = {
        "parentResource": {"apiVersion": THINGS.api_version, "resource": THINGS.resource},
        "inputResources": [maps],
        "outputResources": [{**maps, "updateStrategy": {"method": "InPlace"}}],
        "hooks": {"map": _hook(world, "map", copy_input), "tombstone": _hook(world, "tombstone", keep_outputs)},
    }
    world.create(MAPS, {"metadata": {"name": _NAME}, "spec": spec})
    selector: JsonObject = {"matchLabels": {**_LABELS}}
    world.create(THINGS, {"metadata": {"name": _PARENT}, "spec": {"selector": selector, "tombstones": _KEEPS}})


def _hook(world: World, name: str, hook: Hook) -> JsonObject:
    return {"webhook": {"url": world.webhooks.url(f"/{_NAME}/{name}", hook), "timeout": "10s"}}


def _input(world: World, name: str, *, text: str) -> None:
    world.create(CONFIG_MAPS, {"metadata": {"name": name, "labels": {**_LABELS}}, "data": {"text": text}})


async def _patience(world: World, found_problem: Callable[[World], str]) -> None:
    await world.until(lambda: found_problem(world), within_seconds=_PATIENCE_SECONDS)
    await asyncio.sleep(world.plan.pause_seconds())


def _outputs(world: World) -> dict[str, JsonObject]:
    found = world.all(CONFIG_MAPS)
    return {name: obj for name, obj in found.items() if unstructured.annotations(obj).get(MAP_CONTROLLER_ANNOTATION) == _NAME}


def _wrong_marks(world: World, outputs: Mapping[str, JsonObject]) -> str:
    parent = world.get(THINGS, _PARENT)
    for name, output in outputs.items():
        owner, source = controller_ref(output), world.get(CONFIG_MAPS, name.removesuffix("-copy"))
        if parent is None or owner is None or owner.uid != unstructured.uid(parent):
            return f"{name} does not belong to the parent"
        if source is not None and unstructured.annotations(output).get(MAP_KEY) != unstructured.uid(source):
            return f"the map key of {name} is not that of its input"
    return ""


def _wrong_status(world: World, *, inputs: int, outputs: int) -> str:
    status = unstructured.child_object(world.get(THINGS, _PARENT) or {}, "status")
    counted = {key: unstructured.child_object(status, key).get(CONFIG_MAPS.resource) for key in ("inputs", "outputs")}
    ready = [each.get("status") for each in unstructured.child_objects(status, "conditions") if each.get("type") == "Ready"]
    if counted != {"inputs": {"total": inputs}, "outputs": {"total": outputs}} or ready != ["True"]:
        return f"the status is {status}, and should count {inputs} inputs and {outputs} outputs"
    return ""
