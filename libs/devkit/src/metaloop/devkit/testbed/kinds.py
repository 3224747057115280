"""A rich manifest of every kind that users manage as children, and changes to it."""

from dataclasses import dataclass
from typing import Final

from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo

_LABELS: Final[JsonObject] = {"app": "mine"}
_SELECTOR: Final[JsonObject] = {"matchLabels": _LABELS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind: what a hook wants, and how to change that."""

    info: ResourceInfo
    content: JsonObject
    """All fields except apiVersion, kind and metadata."""
    drift: JsonObject
    """A merge patch by another client, which changes a value that the hook wants."""
    other: JsonObject
    """A merge patch of `content` to something else that the hook wants.

    It changes an immutable field if the kind has one.
    """

    @property
    def name(self) -> str:
        """The kind's name."""
        return self.info.kind


def _kind(api_version: str, resource: str, kind: str, *, namespaced: bool = True) -> ResourceInfo:
    return ResourceInfo(api_version=api_version, resource=resource, kind=kind, namespaced=namespaced)


_CONTAINER: Final[JsonObject] = {
    "name": "main",
    "image": "example.com/app:1",
    "args": [],
    "workingDir": "",
    "imagePullPolicy": "",
    "ports": [{"containerPort": 53, "protocol": "UDP", "hostPort": 0}, {"containerPort": 53}],
    "env": [
        {"name": "B", "value": "1"},
        {"name": "EMPTY", "value": ""},
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
    ],
    "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "initialDelaySeconds": 0, "periodSeconds": 0},
    "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5, "memory": "0.5Gi"}},
    "securityContext": {"allowPrivilegeEscalation": False},
    "volumeMounts": [{"name": "config", "mountPath": "/config", "readOnly": True}, {"name": "scratch", "mountPath": "/scratch"}],
}
_POD_SPEC: Final[JsonObject] = {
    "hostNetwork": False,
    "nodeName": "",
    "serviceAccountName": "default",
    "containers": [_CONTAINER],
    "imagePullSecrets": [{"name": "pull"}],
    "tolerations": [{"key": "spot", "operator": "Exists"}],
    "volumes": [
        {"name": "config", "configMap": {"name": "a"}},
        {"name": "scratch", "emptyDir": {"sizeLimit": "1024Mi"}},
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
    ],
}
_TEMPLATE: Final[JsonObject] = {"metadata": {"labels": _LABELS, "creationTimestamp": None}, "spec": _POD_SPEC}
_JOB: Final[JsonObject] = {"template": {"spec": {**_POD_SPEC, "restartPolicy": "Never"}}, "backoffLimit": 0}
_TARGET: Final[JsonObject] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
_CLAIM: Final[JsonObject] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
_AGGREGATED: Final[JsonObject] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
"""A label that some roles of every cluster have, so that there is something to aggregate."""
_PORTS: Final[JsonObject] = {
    "ports": [
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53, "targetPort": 0, "nodePort": 0},
        {"name": "web", "port": 80, "targetPort": 8080},
    ]
}

KINDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(
            info=_kind("apps/v1", "deployments", "Deployment"),
            content={"spec": {"replicas": 2.0, "minReadySeconds": 0, "selector": _SELECTOR, "template": _TEMPLATE}},
            drift={"spec": {"replicas": 5}},
            other={
                "spec": {
                    "selector": {"matchLabels": {"app": "mine", "also": "this"}},
                    "template": {"metadata": {"labels": {"also": "this"}}},
                }
            },
        ),
        Kind(
            info=_kind("apps/v1", "statefulsets", "StatefulSet"),
            content={
                "spec": {
                    "serviceName": "a",
                    "replicas": 0,
                    "selector": _SELECTOR,
                    "template": _TEMPLATE,
                    "volumeClaimTemplates": [{"metadata": {"name": "data", "creationTimestamp": None}, "spec": _CLAIM, "status": {}}],
                }
            },
            drift={"spec": {"replicas": 1}},
            other={"spec": {"serviceName": "b"}},
        ),
        Kind(
            info=_kind("apps/v1", "daemonsets", "DaemonSet"),
            content={"spec": {"selector": _SELECTOR, "template": _TEMPLATE}},
            drift={"spec": {"template": {"spec": {"tolerations": [{"key": "other", "operator": "Exists"}]}}}},
            other={"spec": {"minReadySeconds": 3}},
        ),
        Kind(
            info=_kind("batch/v1", "jobs", "Job"),
            content={"spec": {**_JOB, "suspend": True}},
            drift={"spec": {"suspend": False}},
            other={"spec": {"template": {"spec": {"dnsPolicy": "Default"}}}},
        ),
        Kind(
            info=_kind("batch/v1", "cronjobs", "CronJob"),
            content={"spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": _JOB}}},
            drift={"spec": {"schedule": "0 0 2 1 *"}},
            other={"spec": {"schedule": "0 0 3 1 *"}},
        ),
        Kind(
            info=_kind("v1", "services", "Service"),
            content={"spec": {"selector": _LABELS, "clusterIP": "", **_PORTS}},
            drift={"spec": {"selector": {"app": "other"}}},
            other={"spec": {"clusterIP": "None"}},
        ),
        Kind(
            info=_kind("networking.k8s.io/v1", "ingresses", "Ingress"),
            content={
                "spec": {
                    "rules": [
                        {
                            "host": "example.com",
                            "http": {
                                "paths": [
                                    {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "a", "port": {"number": 80}}}},
                                    {"path": "/", "pathType": "Exact", "backend": {"service": {"name": "b", "port": {"number": 80}}}},
                                ]
                            },
                        }
                    ]
                }
            },
            drift={"spec": {"rules": [{"host": "elsewhere.example.com"}]}},
            other={"spec": {"rules": [{"host": "other.example.com"}]}},
        ),
        Kind(
            info=_kind("v1", "configmaps", "ConfigMap"),
            content={"data": {"key": "value", "empty": "", "value": ""}, "binaryData": {}},
            drift={"data": {"key": "other"}},
            other={"data": {"key": "new"}},
        ),
        Kind(
            info=_kind("v1", "secrets", "Secret"),
            content={"stringData": {"text": "plain"}, "data": {"key": "dmFs\ndWU="}},
            drift={"data": {"text": "b3RoZXI="}},
            other={"type": "example.com/other"},
        ),
        Kind(
            info=_kind("v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
            content={"spec": {**_CLAIM, "storageClassName": "none"}},
            drift={"metadata": {"labels": {"app": "other"}}},
            other={"spec": {"storageClassName": "other"}},
        ),
        Kind(
            info=_kind("v1", "serviceaccounts", "ServiceAccount"),
            content={"automountServiceAccountToken": False, "imagePullSecrets": [{"name": "pull"}], "secrets": []},
            drift={"automountServiceAccountToken": True},
            other={"imagePullSecrets": [{"name": "other"}]},
        ),
        Kind(
            info=_kind("rbac.authorization.k8s.io/v1", "roles", "Role"),
            content={"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
            drift={"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]},
            other={"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["watch"]}]},
        ),
        Kind(
            info=_kind("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding"),
            content={
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
                "subjects": [{"kind": "User", "name": "somebody"}, {"kind": "ServiceAccount", "name": "somebody", "namespace": "default"}],
            },
            drift={"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "another"}]},
            other={"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "b"}},
        ),
        Kind(
            info=_kind("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy"),
            content={
                "spec": {
                    "podSelector": {},
                    "ingress": [{"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}, {"from": [{"podSelector": {}}]}],
                    "egress": [],
                }
            },
            drift={"spec": {"podSelector": {"matchLabels": {"app": "other"}}}},
            other={"spec": {"ingress": [{"ports": [{"port": 54, "protocol": "TCP"}]}]}},
        ),
        Kind(
            info=_kind("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
            content={
                "spec": {
                    "scaleTargetRef": _TARGET,
                    "maxReplicas": 3,
                    "metrics": [
                        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
                        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1024Mi"}}},
                    ],
                    "behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}},
                }
            },
            drift={"spec": {"maxReplicas": 9}},
            other={"spec": {"maxReplicas": 4}},
        ),
        Kind(
            info=_kind("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
            content={"spec": {"minAvailable": "50%", "selector": _SELECTOR}},
            drift={"spec": {"minAvailable": 2}},
            other={"spec": {"minAvailable": 1}},
        ),
        Kind(
            info=_kind("v1", "pods", "Pod"),
            content={"spec": _POD_SPEC},
            drift={"metadata": {"labels": {"app": "other"}}},
            other={"spec": {"dnsPolicy": "Default"}},
        ),
        Kind(
            info=_kind("v1", "namespaces", "Namespace", namespaced=False),
            content={},
            drift={"metadata": {"labels": {"app": "other"}}},
            other={"metadata": {"annotations": {"an": "other"}}},
        ),
        Kind(
            info=_kind("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", namespaced=False),
            content={"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": _AGGREGATED}]}, "rules": []},
            drift={"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"app": "other"}}]}},
            other={"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"app": "another"}}]}},
        ),
    )
}
"""By name."""


def manifest(kind: Kind, name: str, *, namespace: str = "", labels: JsonObject | None = None) -> JsonObject:
    """A child of this kind as a hook wants it."""
    metadata: JsonObject = {"name": name, "labels": {**_LABELS, **(labels or {})}, "annotations": {}, "creationTimestamp": None}
    if namespace and kind.info.namespaced:
        metadata["namespace"] = namespace
    return {"apiVersion": kind.info.api_version, "kind": kind.name, "metadata": metadata, **kind.content}


def patched(obj: JsonObject, patch: JsonObject) -> JsonObject:
    """`obj` after a merge patch."""
    result = dict(obj)
    for key, value in patch.items():
        there = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = patched(there if isinstance(there, dict) else {}, value)
        else:
            result[key] = value
    return result
