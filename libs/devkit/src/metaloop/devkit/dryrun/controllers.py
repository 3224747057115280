"""Finds the controller and the parent that the arguments of a command name."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass

from metaloop.common.api.kinds import KINDS, ControllerKind, parse_controller
from metaloop.common.api.kinds import named as named_kinds
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.discovery import Discovery
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.devkit.errors import NothingToPlan
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.record import record_of
from metaloop.watcher.core.watchset import instance_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentName:
    """The name of a parent. `kind` is empty if the controller was named instead."""

    kind: str = ""
    namespace: str
    name: str

    def __str__(self) -> str:
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind or 'parent'} {name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A parent, and a controller that may serve it."""

    controller: JsonObject
    instance: Instance
    info: ResourceInfo
    parent: JsonObject


def controller_named(text: str) -> tuple[str, str]:
    """The kind and name in `Kind/name`, where the kind may be a plural or a short name, or left out.

    Raises NothingToPlan for an unknown kind.
    """
    kind, slash, name = text.rpartition("/")
    if not slash:
        return "", name
    lower = kind.lower()
    found = next((each for each in KINDS.values() if lower in {each.name.lower(), each.resource.resource, *each.short_names}), None)
    if found is None:
        raise NothingToPlan(f"{kind} is not a kind of controller: name {named_kinds('NAME')}")
    return found.name, name


async def served_by(kube: KubeClient) -> Mapping[ResourceId, ResourceInfo]:
    """The resources that the API server serves."""
    discovery = Discovery(kube)
    await discovery.refresh()
    return discovery.resources()


async def installed(kube: KubeClient, *, kind: str, name: str) -> list[JsonObject]:
    """The installed controllers, of this kind and name unless these are empty."""
    found: list[JsonObject] = []
    for each in KINDS.values():
        if kind in {"", each.name}:
            found += await _installed_of(kube, each)
    return [each for each in found if name in {"", unstructured.name(each)}]


async def _installed_of(kube: KubeClient, kind: ControllerKind) -> list[JsonObject]:
    """The installed controllers of one kind; none where the cluster does not have an optional kind."""
    info = kind.resource
    try:
        page = await kube.list_page(info)
    except NotFound:
        if kind.is_optional:
            return []
        raise
    items = unstructured.child_objects(page, "items")
    return [{**item, "apiVersion": info.api_version, "kind": info.kind} for item in items]


async def find_by_controller(kube: KubeClient, controller: str, parent: str) -> Candidate:
    """The parent `namespace/name` of a controller. Raises NothingToPlan if there is not exactly one."""
    kind, name = controller_named(controller)
    controllers = await installed(kube, kind=kind, name=name)
    if not controllers:
        raise NothingToPlan(f"there is no controller {controller}")
    namespace, _, parent_name = parent.rpartition("/")
    return await _only(kube, controllers, ParentName(namespace=namespace, name=parent_name))


async def find_by_parent(kube: KubeClient, parent: str, *, namespace: str, controller: str = "") -> Candidate:
    """The parent `kind/name` and its controller. Raises NothingToPlan if there is not exactly one."""
    kind, _, name = parent.rpartition("/")
    if not kind:
        raise NothingToPlan(f"{parent} should be KIND/NAME, or the name of a controller with NAMESPACE/NAME after it")
    of_kind, named = controller_named(controller) if controller else ("", "")
    return await _only(kube, await installed(kube, kind=of_kind, name=named), ParentName(kind=kind, namespace=namespace, name=name))


async def _only(kube: KubeClient, controllers: list[JsonObject], named: ParentName) -> Candidate:
    served = await served_by(kube)
    judged = [(each, _instance_or_why(each, served)) for each in controllers]
    found = [s for raw, instance in judged if isinstance(instance, Instance) for s in await _candidates(kube, raw, instance, named)]
    serving = [each for each in found if _is_served(each)] or found
    if len(serving) == 1:
        return serving[0]
    if not serving:
        raise NothingToPlan(_why_nothing(named, judged))
    names = _several(str(each.instance.controller.id) for each in serving)
    option = "with --controller" if named.kind else "with its kind"
    raise NothingToPlan(f"{named} is a parent of several controllers, name one {option}: {names}")


def _name_of(controller: JsonObject) -> str:
    return f"{unstructured.kind(controller)}/{unstructured.name(controller)}"


def _several(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "any controller"


def _instance_or_why(raw: JsonObject, served: Mapping[ResourceId, ResourceInfo]) -> Instance | str:
    """The instance that would serve the parents of a controller, or the reason why there is none."""
    try:
        found = instance_of(parse_controller(raw), served)
    except InvalidSpec as problem:
        return str(problem)
    return found if isinstance(found, Instance) else str(found)


def _why_nothing(named: ParentName, judged: Iterable[tuple[JsonObject, Instance | str]]) -> str:
    """Why no parent was found. Those of a controller that can't be served were not looked for."""
    looked_at = [_name_of(raw) for raw, instance in judged if isinstance(instance, Instance)]
    obstacles = [f"{_name_of(raw)} can't be served: {why}" for raw, why in judged if isinstance(why, str)]
    nothing = [f"there is no {named} of {_several(looked_at)}"] if looked_at or not obstacles else []
    return "; ".join([*nothing, *obstacles])


async def _candidates(kube: KubeClient, raw: JsonObject, instance: Instance, named: ParentName) -> list[Candidate]:
    resources = [parents.watch.resource for parents in instance.parents]
    called = [info for info in resources if not named.kind or _is_called(info, named.kind)]
    found = [(info, await _found(kube, info, named.namespace, named.name)) for info in called]
    return [Candidate(controller=raw, instance=instance, info=info, parent=parent) for info, parent in found if parent is not None]


async def _found(kube: KubeClient, info: ResourceInfo, namespace: str, name: str) -> JsonObject | None:
    if info.namespaced and not namespace:
        return None
    try:
        return await kube.get(info, namespace if info.namespaced else "", name)
    except NotFound:
        return None


def _is_called(info: ResourceInfo, word: str) -> bool:
    names: Iterable[str] = (info.kind.lower(), info.resource, f"{info.resource}.{info.group}")
    return word.lower() in names


def _is_served(candidate: Candidate) -> bool:
    parents = candidate.instance.parents_of(candidate.info.id)
    return parents is not None and parents.serves(record_of(deepcopy(candidate.parent)))
