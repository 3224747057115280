"""What a hook is sent: the JSON of the wire versions v1 and v2.

Rules
    1. Every declared resource has its group, the empty ones too: a hook may look a kind up without asking whether it is there.
    2. v1 names an object by its name, with its namespace before it only where the parent is cluster-scoped; it leaves out what a namespaced parent has outside
       its namespace. v2 names every namespaced object `namespace/name`, and leaves out nothing.
    3. Within a group objects are in the order of their names, so that equal worlds make equal requests.
"""

from collections.abc import Iterable

from metaloop.common.api.hook import Hook, HookKeys, HookVersion
from metaloop.common.json import JsonObject, dumps
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import ObservedGroup
from metaloop.reconciler.core.model import ChildGroup, Observed, RequestObjects


def sync_request(observed: Observed, shown: RequestObjects, *, hook: Hook, keys: HookKeys) -> bytes:
    """The body of a sync or finalize hook's request, in the hook's wire version and its kind's words."""
    return dumps(
        {
            "controller": observed.controller.shown,
            keys.parent: observed.parent,
            keys.children: object_maps(shown.children, version=hook.version, parent_namespace=observed.namespace),
            "related": object_maps(shown.related, version=hook.version, parent_namespace=observed.namespace),
            "finalizing": hook.name == "finalize",
        }
    )


def customize_request(observed: Observed) -> bytes:
    """The body of a customize hook's request, the same for each kind."""
    return dumps({"controller": observed.controller.shown, "parent": observed.parent})


def object_maps(
    groups: Iterable[ChildGroup | ObservedGroup], *, version: HookVersion, parent_namespace: str
) -> dict[str, dict[str, JsonObject]]:
    """Objects by group and name, as the wire `version` spells them."""
    return {group_key(group.info): _objects(group.objects, version=version, parent_namespace=parent_namespace) for group in groups}


def group_key(info: ResourceInfo) -> str:
    """How hooks know a kind: `Pod.v1`, `StatefulSet.apps/v1`."""
    return f"{info.kind}.{info.api_version}"


def _objects(objects: Iterable[JsonObject], *, version: HookVersion, parent_namespace: str) -> dict[str, JsonObject]:
    if version == "v1" and parent_namespace:
        named = {unstructured.name(obj): obj for obj in objects if unstructured.namespace(obj) == parent_namespace}
    else:
        named = {_uniform_name(obj): obj for obj in objects}
    return {name: named[name] for name in sorted(named)}


def _uniform_name(obj: JsonObject) -> str:
    namespace = unstructured.namespace(obj)
    return f"{namespace}/{unstructured.name(obj)}" if namespace else unstructured.name(obj)
