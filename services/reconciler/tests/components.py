"""Builders of the objects of a component, and of what the deployer knows of them."""

from datetime import UTC, datetime

from metaloop.common.api.policies import Policies
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.component.identity import Marks, ObjectKey
from metaloop.reconciler.core.component.target import Placement, Target, targets_of
from metaloop.reconciler.core.component.waves import Rules

PREFIX = "op.example.com"
MARKS = Marks(prefix=PREFIX, owner_id="cluster/default/app")
NOW = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)
TIMESTAMP = "2026-01-02T12:00:00Z"
RULES = Rules(marks=MARKS, now=NOW)

SERVED = {
    (api_version, kind): ResourceInfo(api_version=api_version, resource=resource, kind=kind, namespaced=namespaced)
    for api_version, kind, resource, namespaced in (
        ("v1", "ConfigMap", "configmaps", True),
        ("v1", "Secret", "secrets", True),
        ("v1", "Service", "services", True),
        ("v1", "Namespace", "namespaces", False),
        ("apps/v1", "Deployment", "deployments", True),
        ("batch/v1", "Job", "jobs", True),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False),
        ("apiregistration.k8s.io/v1", "APIService", "apiservices", False),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", False),
    )
}


class Kinds:
    """The kinds that these tests know."""

    def by_kind(self, api_version: str, kind: str) -> ResourceInfo | None:
        """The resource of a kind."""
        return SERVED.get((api_version, kind))


def manifest(kind: str = "ConfigMap", name: str = "a", *, api_version: str = "v1", namespace: str = "", **settings: str) -> JsonObject:
    """A manifest. Settings become annotations: `apply_order="1"`."""
    annotations: JsonObject = {f"{PREFIX}/{key.replace('_', '-')}": value for key, value in settings.items()}
    metadata: JsonObject = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def crd(group: str = "example.com", kind: str = "Widget", *, scope: str = "Namespaced", **settings: str) -> JsonObject:
    """The manifest of a CustomResourceDefinition."""
    plural = f"{kind.lower()}s"
    spec: JsonObject = {
        "group": group,
        "names": {"kind": kind, "plural": plural},
        "scope": scope,
        "versions": [
            {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}},
            {"name": "v0", "served": False, "storage": False},
        ],
    }
    base = manifest("CustomResourceDefinition", f"{plural}.{group}", api_version="apiextensions.k8s.io/v1", **settings)
    return {**base, "spec": spec}


def api_service(group: str = "metrics.example.com", version: str = "v1", **settings: str) -> JsonObject:
    """The manifest of an APIService."""
    base = manifest("APIService", f"{version}.{group}", api_version="apiregistration.k8s.io/v1", **settings)
    return {**base, "spec": {"group": group, "version": version}}


def widget(name: str = "w", **settings: str) -> JsonObject:
    """The manifest of an instance of the `crd`."""
    return manifest("Widget", name, api_version="example.com/v1", **settings)


def placement(*, policies: Policies | None = None, digest: str = "component", namespace: str = "default") -> Placement:
    """What the targets have in common."""
    return Placement(namespace=namespace, marks=MARKS, policies=policies or Policies(), digest=digest)


def targets(*manifests: JsonObject, policies: Policies | None = None, digest: str = "component") -> tuple[Target, ...]:
    """The targets of manifests."""
    return targets_of(manifests, placement(policies=policies, digest=digest), kinds=Kinds())


def target(obj: JsonObject | None = None, *, policies: Policies | None = None) -> Target:
    """The target of one manifest."""
    return targets(obj or manifest(), policies=policies)[0]


def live(of: Target, *, version: str = "1", marks: Marks | None = MARKS, digest: str | None = None, **changes: JsonValue) -> JsonObject:
    """The live object of a target as it was applied, but for the `changes`; without marks if they are None."""
    obj = marks.on(of.obj, digest=of.digest if digest is None else digest) if marks else of.obj
    metadata = obj["metadata"] if isinstance(obj["metadata"], dict) else {}
    return {**obj, "metadata": {**metadata, "uid": f"uid-of-{of.key.name}", "resourceVersion": version}, **changes}


def going(obj: JsonObject) -> JsonObject:
    """The same object, being deleted."""
    metadata = obj["metadata"] if isinstance(obj["metadata"], dict) else {}
    return {**obj, "metadata": {**metadata, "deletionTimestamp": TIMESTAMP}}


def key(name: str = "a", *, kind: str = "ConfigMap", group: str = "", namespace: str = "default") -> ObjectKey:
    """The key of an object."""
    return ObjectKey(group, kind, namespace, name)
