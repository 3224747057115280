"""What the cluster holds of a scenario at one moment: to check conditions, and to show it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import Cluster

_OF_KUBERNETES: Final = ("kube-", "default")
_IN_EVERY_NAMESPACE: Final = "kube-root-ca.crt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of a table, and whether the object in it is as it should be."""

    cells: tuple[str, ...]
    is_right: bool = True


class Snapshot(Protocol):
    """What every snapshot can show."""

    @property
    def counts(self) -> str:
        """The snapshot in one line."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The titles of the columns."""
        ...

    @property
    def rows(self) -> Sequence[Row]:
        """The rows of the table."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """The objects of some kinds, by kind and then by `namespace/name`."""

    found: Mapping[str, Mapping[str, JsonObject]]
    columns: tuple[str, ...] = ("kind", "name", "content")

    def of(self, kind: str) -> Mapping[str, JsonObject]:
        """The objects of a kind."""
        return self.found[kind]

    def get(self, kind: str, key: str) -> JsonObject:
        """One object; empty if there is none."""
        return self.found[kind].get(key, {})

    @property
    def counts(self) -> str:
        """How many there are of each kind."""
        return ", ".join(f"{len(objects)} {kind}{'' if len(objects) == 1 else 's'}" for kind, objects in self.found.items())

    @property
    def rows(self) -> Sequence[Row]:
        """A row for each object."""
        return [_row(kind, key, obj) for kind, objects in self.found.items() for key, obj in objects.items()]


async def objects_of(cluster: Cluster, resources: Sequence[ResourceInfo]) -> Objects:
    """All objects of some kinds, except those that Kubernetes itself created."""
    found: dict[str, dict[str, JsonObject]] = {}
    for resource in resources:
        listed = await cluster.list(resource)
        found[resource.kind] = {_key(obj): obj for obj in sorted(listed, key=_key) if not _is_of_kubernetes(obj)}
    return Objects(found=found)


def is_ready(obj: JsonObject) -> bool:
    """Whether a Pod is ready."""
    conditions = unstructured.child_object(obj, "status").get("conditions")
    return is_array(conditions) and any(is_object(each) and each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _key(obj: JsonObject) -> str:
    namespace = unstructured.namespace(obj)
    return f"{namespace}/{unstructured.name(obj)}" if namespace else unstructured.name(obj)


def _is_of_kubernetes(obj: JsonObject) -> bool:
    home = unstructured.namespace(obj) or unstructured.name(obj)
    return home.startswith(_OF_KUBERNETES) or unstructured.name(obj) == _IN_EVERY_NAMESPACE


def _row(kind: str, key: str, obj: JsonObject) -> Row:
    if unstructured.is_deleting(obj):
        return Row(cells=(kind, key, "being deleted"), is_right=False)
    text_of = _TEXTS.get(kind, _status)
    return Row(cells=(kind, key, text_of(obj)), is_right=kind != "Pod" or _pod(obj) in {"Ready", "Succeeded"})


def _pod(obj: JsonObject) -> str:
    return "Ready" if is_ready(obj) else unstructured.text(unstructured.child_object(obj, "status"), "phase")


def _selector(obj: JsonObject) -> str:
    return _pairs(unstructured.child_object(unstructured.child_object(obj, "spec"), "selector"))


def _data(obj: JsonObject) -> str:
    return _pairs(unstructured.child_object(obj, "data"))


def _labels(obj: JsonObject) -> str:
    labels = unstructured.labels(obj)
    return ", ".join(f"{key}={value}" for key, value in labels.items() if "kubernetes.io" not in key)


def _replicas(obj: JsonObject) -> str:
    spec, status = unstructured.child_object(obj, "spec"), unstructured.child_object(obj, "status")
    return f"{status.get('readyReplicas', 0)} of {spec.get('replicas')} ready"


def _status(obj: JsonObject) -> str:
    return _pairs({key: value for key, value in unstructured.child_object(obj, "status").items() if not isinstance(value, list)})


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())


_TEXTS: Final[Mapping[str, Callable[[JsonObject], str]]] = {
    "Pod": _pod,
    "Service": _selector,
    "ConfigMap": _data,
    "Secret": _data,
    "Namespace": _labels,
    "ReplicaSet": _replicas,
    "StatefulSet": _replicas,
}
"""What the row of an object shows, by kind; for other kinds it shows the status."""
