"""The order in which objects are applied and deleted, where nobody says otherwise.

Rules
    1. The wave comes first. Within it, the canonical order of kinds counts, and then the order of the manifests.
    2. What others need is applied early and deleted late: namespaces, types, permissions, configuration.
    3. API services come late in a wave, and instances of managed types come last. What stops objects from being
       deleted, such as webhooks that check them, goes after those.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import group_of

T = TypeVar("T")

CRD_GROUP: Final = "apiextensions.k8s.io"
API_SERVICE_GROUP: Final = "apiregistration.k8s.io"


class GroupKind(NamedTuple):
    """A group and a kind in it."""

    group: str
    kind: str


NAMESPACE: Final = GroupKind("", "Namespace")
CRD: Final = GroupKind(CRD_GROUP, "CustomResourceDefinition")
API_SERVICE: Final = GroupKind(API_SERVICE_GROUP, "APIService")

_WEBHOOKS: Final = (
    GroupKind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
)
_CLASSES: Final = (
    GroupKind("networking.k8s.io", "IngressClass"),
    GroupKind("node.k8s.io", "RuntimeClass"),
    GroupKind("scheduling.k8s.io", "PriorityClass"),
    GroupKind("storage.k8s.io", "StorageClass"),
)
_RBAC: Final = "rbac.authorization.k8s.io"
_CONFIGURATION: Final = (GroupKind("", "ConfigMap"), GroupKind("", "Secret"))

_APPLY: Final[dict[GroupKind, int]] = {
    NAMESPACE: -4,
    **dict.fromkeys(_WEBHOOKS, -3),
    **dict.fromkeys((CRD, *_CLASSES, GroupKind(_RBAC, "ClusterRole"), GroupKind(_RBAC, "Role")), -2),
    **dict.fromkeys((*_CONFIGURATION, GroupKind(_RBAC, "ClusterRoleBinding"), GroupKind(_RBAC, "RoleBinding")), -1),
    API_SERVICE: 1,
}
"""When each kind is applied within a wave. Kinds that are not listed: 0."""

_DELETE: Final[dict[GroupKind, int]] = {
    CRD: -1,
    API_SERVICE: -1,
    **dict.fromkeys(_WEBHOOKS, 1),
    **dict.fromkeys((GroupKind("", "Service"), *_CONFIGURATION), 2),
    NAMESPACE: 3,
    **dict.fromkeys(_CLASSES, 4),
}
"""When each kind is deleted within a wave. Kinds that are not listed: 0."""


def apply_priority(group: str, kind: str) -> int:
    """The place of a kind within its wave when it is applied. The lowest comes first."""
    return _APPLY.get(GroupKind(group, kind), 0)


def delete_priority(group: str, kind: str) -> int:
    """The place of a kind within its wave when it is deleted. The lowest comes first."""
    return _DELETE.get(GroupKind(group, kind), 0)


def is_type(obj: JsonObject) -> bool:
    """Whether an object makes other types known: it is a CustomResourceDefinition or an APIService."""
    return _group_kind(obj) in {CRD, API_SERVICE}


def is_namespace(obj: JsonObject) -> bool:
    """Whether an object is a Namespace."""
    return _group_kind(obj) == NAMESPACE


def _group_kind(obj: JsonObject) -> GroupKind:
    return GroupKind(group_of(unstructured.api_version(obj)), unstructured.kind(obj))


def grouped(objects: Iterable[T], key: Callable[[T], int]) -> Iterator[tuple[int, list[T]]]:
    """The objects in groups of equal `key`, the lowest first. Within a group they keep their order."""
    for value, group in groupby(sorted(objects, key=key), key=key):
        yield value, list(group)
