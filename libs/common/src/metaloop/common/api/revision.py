"""ControllerRevision: a former state of a parent, and the children at that revision; in Metacontroller's format."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from metaloop.common.api import API_VERSION
from metaloop.common.json import JsonObject, JsonValue, is_array
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.selector import Requirement, Selector

REVISIONS: Final = ResourceInfo(
    api_version=API_VERSION, resource="controllerrevisions", kind="ControllerRevision", namespaced=True, has_status=True
)

_API_GROUP_LABEL: Final = "metacontroller.k8s.io/apiGroup"
_RESOURCE_LABEL: Final = "metacontroller.k8s.io/resource"
_NAMESPACE_OF_CLUSTER_SCOPED: Final = "default"


@dataclass(frozen=True, slots=True, order=True)
class ClaimedChild:
    """A child as a revision names it, without a version.

    `name` includes the namespace if the parent is cluster-scoped.
    """

    api_group: str
    kind: str
    name: str


def revision_namespace(parent_namespace: str) -> str:
    """The namespace of a parent's revisions: its own, or `default` for a cluster-scoped parent, as for its Events."""
    return parent_namespace or _NAMESPACE_OF_CLUSTER_SCOPED


def kind_labels(parents: ResourceId) -> dict[str, str]:
    """The labels of revisions of parents of this resource."""
    return {_API_GROUP_LABEL: parents.group, _RESOURCE_LABEL: parents.resource}


def revision_selector(children: Selector, parents: ResourceId) -> Selector:
    """The selector of the revisions of a parent that selects `children`: that, and the labels of its resource."""
    own = [Requirement(key, "In", (value,)) for key, value in kind_labels(parents).items()]
    return Selector((*children.requirements, *own))


def patch_of(revision: JsonObject) -> JsonObject:
    """The fields of the parent that a stored revision records."""
    return unstructured.child_object(revision, "parentPatch")


def claimed_by(revision: JsonObject) -> frozenset[ClaimedChild]:
    """The children at a stored revision. Malformed entries are ignored."""
    entries = unstructured.child_objects(revision, "children")
    return frozenset(child for entry in entries for child in _children_in(entry))


def _children_in(entry: JsonObject) -> Iterable[ClaimedChild]:
    names = entry.get("names")
    for name in names if is_array(names) else ():
        if isinstance(name, str):
            yield ClaimedChild(unstructured.text(entry, "apiGroup"), unstructured.text(entry, "kind"), name)


def children_field(children: Iterable[ClaimedChild]) -> list[JsonValue]:
    """The `children` field of a revision with these children: one sorted entry per kind."""
    names: dict[tuple[str, str], list[JsonValue]] = {}
    for child in sorted(children):
        names.setdefault((child.api_group, child.kind), []).append(child.name)
    return [{"apiGroup": group, "kind": kind, "names": listed} for (group, kind), listed in names.items()]
