"""Manifests for tests and benches: each builder takes only what differs from case to case."""

from collections.abc import Mapping, Sequence

from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceId, ResourceInfo

GROUP = "testbed.example.com"

HOOK_TIMEOUT = "30s"
"""Of hooks whose timeout is not what a test is about: much longer than any answer takes on a busy machine."""

CONFIG_MAP_CHILDREN = ResourceId("v1", "configmaps")


def parent_resource(plural: str, *, namespaced: bool = True, has_status: bool = True) -> ResourceInfo:
    """The resource of a parent kind that `crd` installs."""
    return ResourceInfo(
        api_version=f"{GROUP}/v1", resource=plural, kind=plural.removesuffix("s").title(), namespaced=namespaced, has_status=has_status
    )


def crd(resource: ResourceInfo) -> JsonObject:
    """The CRD of a parent kind whose spec and status may hold anything."""
    anything: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: JsonObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
    }
    if resource.has_status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.resource}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {"plural": resource.resource, "singular": resource.kind.lower(), "kind": resource.kind},
            "versions": [version],
        },
    }


def composite(name: str, *, parent: ResourceInfo, hook_url: str, children: Sequence[JsonObject], **spec: object) -> JsonObject:
    """A CompositeController with a sync hook at `hook_url`; `spec` adds or overrides fields."""
    base: JsonObject = {
        "parentResource": {"apiVersion": parent.api_version, "resource": parent.resource},
        "childResources": list(children),
        "hooks": {"sync": {"webhook": {"url": hook_url, "timeout": HOOK_TIMEOUT}}},
    }
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": name},
        "spec": {**base, **spec},  # type: ignore[dict-item]
    }


def map_controller(name: str, *, parent: ResourceInfo, hook_url: str, **spec: object) -> JsonObject:
    """A MapController from ConfigMaps to ConfigMaps with a map hook at `hook_url`; `spec` adds or overrides fields."""
    base: JsonObject = {
        "parentResource": {"apiVersion": parent.api_version, "resource": parent.resource},
        "inputResources": [child_rule(method="")],
        "outputResources": [child_rule()],
        "hooks": {"map": {"webhook": {"url": hook_url, "timeout": "5s"}}},
    }
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "MapController",
        "metadata": {"name": name},
        "spec": {**base, **spec},  # type: ignore[dict-item]
    }


def child_rule(resource: ResourceId = CONFIG_MAP_CHILDREN, *, method: str = "InPlace") -> JsonObject:
    """One entry of `childResources`; without an update strategy if `method` is empty."""
    rule: JsonObject = {"apiVersion": resource.api_version, "resource": resource.resource}
    return {**rule, "updateStrategy": {"method": method}} if method else rule


def parent(
    resource: ResourceInfo, name: str, *, namespace: str = "", spec: JsonObject | None = None, labels: Mapping[str, str] | None = None
) -> JsonObject:
    """A parent whose selector matches children with the label `parent` and its name."""
    metadata: JsonObject = {"name": name, "labels": dict(labels or {})}
    if namespace:
        metadata["namespace"] = namespace
    selector: JsonObject = {"matchLabels": {"parent": name}}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": {"selector": selector, **(spec or {})},
    }


def config_map(
    name: str, *, labels: Mapping[str, str] | None = None, data: Mapping[str, str] | None = None, namespace: str = ""
) -> JsonObject:
    """A ConfigMap, in its parent's namespace by default."""
    metadata: JsonObject = {"name": name}
    if labels:
        metadata["labels"] = dict(labels)
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data or {})}
