"""Builds the JSON that hooks are sent, in the wire versions v1 and v2.

Rules
    1. Every declared resource has a group, even if it is empty. A hook can look a kind up without checking for it.
    2. v1 keys an object by its name, with the namespace before it only if the parent is cluster-scoped. It leaves out
       objects outside the namespace of a namespaced parent. v2 keys every namespaced object by `namespace/name`, and
       leaves out nothing.
    3. The objects of a group are sorted by key, so that equal observations make equal requests.
    4. A request with many objects is serialised object by object while it is sent. The text is the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from orjson import Fragment

from metaloop.common.api.hook import Hook, HookKeys, HookVersion
from metaloop.common.http.body import Body
from metaloop.common.json import JsonObject, dumps
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import ObservedGroup
from metaloop.reconciler.core.model import ChildGroup, Observed, RequestObjects

MANY_OBJECTS: Final = 100
"""A request with more objects is serialised while it is sent."""

ObjectMaps: TypeAlias = Mapping[str, Mapping[str, JsonObject]]
"""Objects by group and key."""


def sync_request(observed: Observed, objects: RequestObjects, *, hook: Hook, keys: HookKeys) -> Body:
    """The body of a sync or finalize hook's request, in the hook's wire version and with the keys of its kind."""
    children = object_maps(objects.children, version=hook.version, parent_namespace=observed.namespace)
    related = object_maps(objects.related, version=hook.version, parent_namespace=observed.namespace)
    request = {
        "controller": observed.controller.shown,
        keys.parent: observed.parent,
        keys.children: children,
        "related": related,
        "finalizing": hook.name == "finalize",
    }
    groups = (*children.values(), *related.values())
    if sum(map(len, groups)) <= MANY_OBJECTS:
        return dumps(request)
    frame = dumps({**request, keys.children: _without_objects(children), "related": _without_objects(related)})
    return LargeRequest(frame=frame, groups=groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeRequest:
    """A request that is serialised as often as it is iterated over."""

    frame: bytes
    """The request, with a line break in place of the objects of each group. JSON contains no other."""
    groups: Sequence[Mapping[str, JsonObject]]

    def __iter__(self) -> Iterator[bytes]:
        """The pieces of the request: one for each object, and what is between the groups."""
        first, *others = self.frame.split(b"\n")
        yield first
        for group, frame in zip(self.groups, others, strict=True):
            separator = b""
            for key, obj in group.items():
                yield b"%s%s:%s" % (separator, dumps(key), dumps(obj))
                separator = b","
            yield frame


def _without_objects(groups: ObjectMaps) -> dict[str, Fragment]:
    return {key: Fragment(b"{\n}") for key in groups}


def customize_request(observed: Observed) -> bytes:
    """The body of a customize hook's request. It is the same for each kind."""
    return dumps({"controller": observed.controller.shown, "parent": observed.parent})


def object_maps(
    groups: Iterable[ChildGroup | ObservedGroup], *, version: HookVersion, parent_namespace: str
) -> dict[str, dict[str, JsonObject]]:
    """Objects by group and key, as the wire `version` spells them."""
    return {group_key(group.info): _objects(group.objects, version=version, parent_namespace=parent_namespace) for group in groups}


def group_key(info: ResourceInfo) -> str:
    """The key of a kind in requests: `Pod.v1`, `StatefulSet.apps/v1`."""
    return f"{info.kind}.{info.api_version}"


def _objects(objects: Iterable[JsonObject], *, version: HookVersion, parent_namespace: str) -> dict[str, JsonObject]:
    match version:
        case "v1" if parent_namespace:
            named = {unstructured.name(obj): obj for obj in objects if unstructured.namespace(obj) == parent_namespace}
        case "v1" | "v2":
            named = {_qualified_name(obj): obj for obj in objects}
        case _:
            assert_never(version)
    return {name: named[name] for name in sorted(named)}


def _qualified_name(obj: JsonObject) -> str:
    namespace = unstructured.namespace(obj)
    return f"{namespace}/{unstructured.name(obj)}" if namespace else unstructured.name(obj)
