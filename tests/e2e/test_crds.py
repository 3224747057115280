"""Our kinds, as a real API server sees them: what users of Metacontroller write is stored whole, defaults are set,
names are known.
"""

import re

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import COMPONENTS, COMPOSITES, CRDS, MAPS, NAMESPACES, ApiRefused, Cluster
from metaloop.devkit.testbed.lab import Platform

DECORATORS = ResourceInfo(
    api_version="metacontroller.k8s.io/v1alpha1", resource="decoratorcontrollers", kind="DecoratorController", namespaced=False
)
REVISIONS = ResourceInfo(
    api_version="metacontroller.k8s.io/v1alpha1", resource="controllerrevisions", kind="ControllerRevision", namespaced=True
)

# A parent kind that does not exist: no service runs these controllers.
_ABSENT: JsonObject = {"apiVersion": "absent.example.com/v1", "resource": "absents"}

_SELECTOR: JsonObject = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "c", "operator": "In", "values": ["d", "e"]}, {"key": "f", "operator": "Exists"}],
}
_SECRET: JsonObject = {"name": "n", "namespace": "s"}
_CONNECTION: JsonObject = {
    "caBundle": {
        "inline": "PEM",
        "secretRef": {"name": "n", "namespace": "s", "key": "k"},
        "configMapRef": {"name": "n", "namespace": "s", "key": "k"},
    },
    "clientTLS": {"secretRef": _SECRET, "certKey": "c", "privateKeyKey": "k"},
    "authorization": {"type": "Token", "secretRef": {"name": "n", "namespace": "s", "key": "k"}},
    "basicAuth": {"secretRef": _SECRET, "usernameKey": "u", "passwordKey": "p"},
}
_HOOK: JsonObject = {
    "version": "v2",
    "webhook": {
        "url": "http://hook.example.com/sync",
        "path": "/sync",
        "service": {"name": "n", "namespace": "s", "port": 8080, "protocol": "https"},
        "timeout": "1m30s",
        "etag": {"enabled": True, "cacheTimeoutSeconds": 1, "cacheCleanupSeconds": 2},
        "responseUnMarshallMode": "strict",
        **_CONNECTION,
    },
}
_ENDPOINTS: JsonObject = {"endpointConfigs": [{"host": "hook.example.com", **_CONNECTION}], "resyncPeriodSeconds": 3600}
_CONDITION: JsonObject = {
    "type": "Ready", "status": "True", "observedGeneration": 1, "lastTransitionTime": "2026-01-02T03:04:05Z", "reason": "R", "message": "m",
}  # fmt: skip

COMPOSITE_SPEC: JsonObject = {
    "parentResource": {
        **_ABSENT,
        "labelSelector": _SELECTOR,
        "ignoreStatusChanges": True,
        "revisionHistory": {"fieldPaths": ["spec.a", "spec.b"]},
    },
    "childResources": [
        {
            "apiVersion": "apps/v1",
            "resource": "deployments",
            "updateStrategy": {
                "method": "RollingInPlace",
                "statusChecks": {"conditions": [{"type": "Ready", "status": "True", "reason": "Good"}, {"type": "Other"}]},
            },
        },
        {"apiVersion": "v1", "resource": "pods"},
    ],
    "hooks": {"sync": _HOOK, "finalize": _HOOK, "customize": _HOOK, "preUpdateChild": _HOOK, "postUpdateChild": _HOOK},
    "generateSelector": True,
    **_ENDPOINTS,
}
DECORATOR_SPEC: JsonObject = {
    "resources": [
        {
            **_ABSENT,
            "labelSelector": _SELECTOR,
            "annotationSelector": {
                "matchAnnotations": {"a": "b"},
                "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}],
            },
            "ignoreStatusChanges": True,
        }
    ],
    "attachments": [{"apiVersion": "v1", "resource": "pods", "updateStrategy": {"method": "Recreate"}}],
    "hooks": {"sync": _HOOK, "finalize": _HOOK, "customize": _HOOK},
    **_ENDPOINTS,
}
MAP_SPEC: JsonObject = {
    "parentResource": {**_ABSENT, "labelSelector": _SELECTOR},
    "inputResources": [{"apiVersion": "v1", "resource": "pods"}],
    "outputResources": [{"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "Recreate"}}],
    "hooks": {"map": _HOOK, "tombstone": _HOOK},
    **_ENDPOINTS,
}


@pytest.mark.parametrize(("resource", "spec"), [(COMPOSITES, COMPOSITE_SPEC), (DECORATORS, DECORATOR_SPEC), (MAPS, MAP_SPEC)])
async def test_every_field_of_a_controller_survives(platform: Platform, resource: ResourceInfo, spec: JsonObject) -> None:
    stored = await _stored(platform.cluster, resource, spec)

    assert stored["spec"] == spec


async def test_what_a_map_controller_does_not_know_is_stored_so_that_the_watcher_can_refuse_it(platform: Platform) -> None:
    spec: JsonObject = {**MAP_SPEC, "childResources": [], "hooks": {"map": _HOOK, "finalize": _HOOK}}

    stored = await _stored(platform.cluster, MAPS, spec)

    assert stored["spec"] == spec


@pytest.mark.parametrize("resource", [COMPOSITES, DECORATORS, MAPS])
async def test_status_is_a_subresource_with_conditions_and_counts(platform: Platform, resource: ResourceInfo) -> None:
    status: JsonObject = {"observedGeneration": 1, "parents": 3, "failingParents": 1, "conditions": [_CONDITION], "later": {"x": 1}}
    specs: dict[str, JsonObject] = {
        COMPOSITES.kind: {"parentResource": _ABSENT},
        DECORATORS.kind: {"resources": [_ABSENT]},
        MAPS.kind: MAP_SPEC,
    }
    spec = specs[resource.kind]
    await platform.cluster.create(resource, _controller(resource, "with-status", spec))

    patched = await platform.cluster.patch(resource, "", "with-status", {"status": status}, subresource="status")

    await platform.cluster.delete(resource, "", "with-status")
    assert patched["status"] == status


async def test_versions_and_keys_have_metacontrollers_defaults(platform: Platform) -> None:
    hook: JsonObject = {
        "webhook": {
            "caBundle": {"secretRef": _SECRET},
            "clientTLS": {"secretRef": _SECRET},
            "authorization": {"secretRef": {**_SECRET, "key": "k"}},
            "basicAuth": {"secretRef": _SECRET},
        }
    }

    stored = await _stored(platform.cluster, COMPOSITES, {"parentResource": _ABSENT, "hooks": {"sync": hook}})

    spec = unstructured.child_object(stored, "spec")
    assert unstructured.child_object(spec, "hooks")["sync"] == {
        "version": "v1",
        "webhook": {
            "caBundle": {"secretRef": {**_SECRET, "key": "ca.crt"}},
            "clientTLS": {"secretRef": _SECRET, "certKey": "tls.crt", "privateKeyKey": "tls.key"},
            "authorization": {"type": "Bearer", "secretRef": {**_SECRET, "key": "k"}},
            "basicAuth": {"secretRef": _SECRET, "usernameKey": "username", "passwordKey": "password"},
        },
    }


@pytest.mark.parametrize(
    ("resource", "spec", "field"),
    [
        (COMPOSITES, {}, "parentResource"),
        (COMPOSITES, {"parentResource": {"resource": "absents"}}, "apiVersion"),
        (COMPOSITES, {"parentResource": _ABSENT, "hooks": {"sync": {"version": "v3"}}}, "version"),
        (COMPOSITES, {"parentResource": _ABSENT, "childResources": [{**_ABSENT, "updateStrategy": {"method": "Never"}}]}, "method"),
        (COMPOSITES, {"parentResource": _ABSENT, "endpointConfigs": [{}]}, "host"),
        (DECORATORS, {}, "resources"),
        (MAPS, {**MAP_SPEC, "inputResources": []}, "inputResources"),
        (MAPS, {**MAP_SPEC, "hooks": {"tombstone": _HOOK}}, "map"),
        (MAPS, {**MAP_SPEC, "outputResources": [{**_ABSENT, "updateStrategy": {"method": "RollingInPlace"}}]}, "method"),
    ],
)
async def test_what_is_plainly_wrong_is_refused(platform: Platform, resource: ResourceInfo, spec: JsonObject, field: str) -> None:
    with pytest.raises(ApiRefused, match=field):
        await platform.cluster.create(resource, _controller(resource, "refused", spec))


async def test_revision_keeps_any_patch_of_its_parent_and_the_names_of_its_children(platform: Platform) -> None:
    namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "revisions"}}
    await platform.cluster.create(NAMESPACES, namespace)
    content: JsonObject = {
        "parentPatch": {"spec": {"anything": [{"a": 1, "b": None}]}},
        "children": [{"apiGroup": "", "kind": "Pod", "names": ["a", "b"]}],
    }
    revision: JsonObject = {"apiVersion": REVISIONS.api_version, "kind": REVISIONS.kind, "metadata": {"name": "r"}, **content}

    stored = await platform.cluster.create(REVISIONS, revision, namespace="revisions")

    assert {key: stored[key] for key in content} == content


@pytest.mark.parametrize(
    ("name", "short_names", "scope"),
    [
        ("compositecontrollers", ["cc", "cctl"], "Cluster"),
        ("decoratorcontrollers", ["dec", "decorators"], "Cluster"),
        ("mapcontrollers", ["maps", "mapctl"], "Cluster"),
        ("controllerrevisions", None, "Namespaced"),
    ],
)
async def test_kinds_have_their_names_and_scope(platform: Platform, name: str, short_names: list[str] | None, scope: str) -> None:
    found = await platform.cluster.get(CRDS, "", f"{name}.metacontroller.k8s.io")

    spec = unstructured.child_object(found, "spec")
    names = unstructured.child_object(unstructured.child_object(found, "status"), "acceptedNames")
    assert (names.get("shortNames"), spec["scope"]) == (short_names, scope)
    assert unstructured.annotations(found)["api-approved.kubernetes.io"] == "unapproved, request not yet submitted"


COMPONENT: JsonObject = {
    "prefix": "op.example.com",
    "parentResource": {"apiVersion": "example.com/v1", "resource": "apps"},
    "generator": {"webhook": {"url": "http://hook.example/generate"}},
}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"prefix": "Op.example.com"}, "spec.prefix"),
        ({"timeout": "10"}, "spec.timeout"),
        ({"policies": {"adoption": "Maybe"}}, "spec.policies.adoption"),
        ({"additionalManagedTypes": [{"group": "a.*", "kind": "*"}]}, "spec.additionalManagedTypes[0].group"),
        ({"parentFields": {"suspend": "spec.suspend"}}, "spec.parentFields.suspend"),
    ],
)
async def test_component_controller_is_refused_with_the_field(platform: Platform, change: JsonObject, field: str) -> None:
    body: JsonObject = {**component_controller("refused"), "spec": {**COMPONENT, **change}}

    with pytest.raises(ApiRefused, match=re.escape(field)):
        await platform.cluster.create(COMPONENTS, body)


async def test_prefix_of_a_component_controller_cannot_be_changed(platform: Platform) -> None:
    await platform.cluster.create(COMPONENTS, component_controller("fixed"))

    with pytest.raises(ApiRefused, match="prefix can't be changed"):
        await platform.cluster.patch(COMPONENTS, "", "fixed", {"spec": {"prefix": "other.example.com"}})

    await platform.cluster.delete(COMPONENTS, "", "fixed")


def component_controller(name: str) -> JsonObject:
    """A ComponentController that the API server accepts."""
    return {"apiVersion": COMPONENTS.api_version, "kind": COMPONENTS.kind, "metadata": {"name": name}, "spec": COMPONENT}


async def _stored(cluster: Cluster, resource: ResourceInfo, spec: JsonObject) -> JsonObject:
    """The object that the server keeps of such a controller."""
    await cluster.create(resource, _controller(resource, "whole", spec))
    stored = await cluster.get(resource, "", "whole")
    await cluster.delete(resource, "", "whole")
    return stored


def _controller(resource: ResourceInfo, name: str, spec: JsonObject) -> JsonObject:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
