"""Built-in kinds that tests use, and minimal objects of them."""

from collections.abc import Mapping

from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo

PODS = ResourceInfo(api_version="v1", resource="pods", kind="Pod", namespaced=True, has_status=True)
SERVICES = ResourceInfo(api_version="v1", resource="services", kind="Service", namespaced=True, has_status=True)
SECRETS = ResourceInfo(api_version="v1", resource="secrets", kind="Secret", namespaced=True)
NODES = ResourceInfo(api_version="v1", resource="nodes", kind="Node", namespaced=False, has_status=True)
CLAIMS = ResourceInfo(api_version="v1", resource="persistentvolumeclaims", kind="PersistentVolumeClaim", namespaced=True, has_status=True)
STATEFUL_SETS = ResourceInfo(api_version="apps/v1", resource="statefulsets", kind="StatefulSet", namespaced=True, has_status=True)
DEPLOYMENTS = ResourceInfo(api_version="apps/v1", resource="deployments", kind="Deployment", namespaced=True, has_status=True)
JOBS = ResourceInfo(api_version="batch/v1", resource="jobs", kind="Job", namespaced=True, has_status=True)
REPLICA_SETS = ResourceInfo(api_version="apps/v1", resource="replicasets", kind="ReplicaSet", namespaced=True, has_status=True)

_CONTAINERS: JsonObject = {"containers": [{"name": "app", "image": "nowhere.example.com/app:1"}]}


def named(
    resource: ResourceInfo, name: str, *, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None
) -> JsonObject:
    """An object without a spec, as a Namespace, a Node or a Secret."""
    metadata: JsonObject = {"name": name, "labels": dict(labels or {}), "annotations": dict(annotations or {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def pod(name: str, *, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None) -> JsonObject:
    """A Pod that no node ever runs."""
    return {**named(PODS, name, labels=labels, annotations=annotations), "spec": _CONTAINERS}


def service(name: str, *, labels: Mapping[str, str] | None = None) -> JsonObject:
    """A Service with the port 80."""
    return {**named(SERVICES, name, labels=labels), "spec": {"selector": {"app": name}, "ports": [{"port": 80}]}}


def stateful_set(name: str, *, labels: Mapping[str, str] | None = None, replicas: int = 0) -> JsonObject:
    """A StatefulSet with this number of replicas."""
    selector: JsonObject = {"app": name}
    template: JsonObject = {"metadata": {"labels": selector}, "spec": _CONTAINERS}
    spec: JsonObject = {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": selector}, "template": template}
    return {**named(STATEFUL_SETS, name, labels=labels), "spec": spec}
