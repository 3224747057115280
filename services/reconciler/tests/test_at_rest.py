"""What a real API server makes of a child that we applied is no difference to us: at rest nothing is written."""

import pytest
from worlds import THINGS

from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.lastapplied import applied_to, new_child

pytestmark = pytest.mark.e2e

LABELS: JsonObject = {"app": "mine"}
POD: JsonObject = {
    "metadata": {"labels": LABELS, "creationTimestamp": None},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "example.com/app:1",
                "ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}],
                "env": [{"name": "B", "value": "1"}, {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
                "resources": {},
            }
        ],
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "volumes": [{"name": "config", "configMap": {"name": "a"}}],
    },
}
TEMPLATE: JsonObject = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": POD}
JOB: JsonObject = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/app:1"}]}}}
TARGET: JsonObject = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}

KINDS: dict[str, tuple[str, str, JsonObject]] = {
    # kind: (apiVersion, resource, content)
    "ConfigMap": ("v1", "configmaps", {"data": {"key": "value"}}),
    "Secret": ("v1", "secrets", {"stringData": None, "data": {"key": "dmFsdWU="}}),
    "ServiceAccount": ("v1", "serviceaccounts", {}),
    "PersistentVolumeClaim": (
        "v1",
        "persistentvolumeclaims",
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    ),
    "Service": (
        "v1",
        "services",
        {
            "spec": {
                "selector": LABELS,
                "type": "NodePort",
                "ports": [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}],
            }
        },
    ),
    "Pod": ("v1", "pods", {"spec": POD["spec"]}),
    "Deployment": ("apps/v1", "deployments", {"spec": {**TEMPLATE, "strategy": {}}, "status": {}}),
    "StatefulSet": ("apps/v1", "statefulsets", {"spec": {**TEMPLATE, "serviceName": "a"}}),
    "DaemonSet": ("apps/v1", "daemonsets", {"spec": {"selector": {"matchLabels": LABELS}, "template": POD}}),
    "Job": ("batch/v1", "jobs", {"spec": JOB}),
    "CronJob": ("batch/v1", "cronjobs", {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}}),
    "Ingress": (
        "networking.k8s.io/v1",
        "ingresses",
        {
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
    ),
    "NetworkPolicy": (
        "networking.k8s.io/v1",
        "networkpolicies",
        {
            "spec": {
                "podSelector": {},
                "ingress": [{"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}, {"from": [{"podSelector": {}}]}],
            }
        },
    ),
    "Role": ("rbac.authorization.k8s.io/v1", "roles", {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    "RoleBinding": (
        "rbac.authorization.k8s.io/v1",
        "rolebindings",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
            "subjects": [{"kind": "User", "name": "somebody"}],
        },
    ),
    "HorizontalPodAutoscaler": (
        "autoscaling/v2",
        "horizontalpodautoscalers",
        {
            "spec": {
                "scaleTargetRef": TARGET,
                "maxReplicas": 3,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}],
            }
        },
    ),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets", {"spec": {"minAvailable": 1, "selector": {"matchLabels": LABELS}}}),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_child_that_was_applied_is_at_rest(kube: KubeClient, namespace: str, kind: str):
    api_version, resource, content = KINDS[kind]
    info = ResourceInfo(api_version=api_version, resource=resource, kind=kind, namespaced=True)
    desired: JsonObject = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "a", "namespace": namespace, "labels": LABELS, "creationTimestamp": None},
        **content,
    }
    # Its owner has to exist: the garbage collector would delete it at some moment otherwise.
    parent = await kube.create(
        THINGS, {"apiVersion": THINGS.api_version, "kind": THINGS.kind, "metadata": {"name": "p", "namespace": namespace}}
    )
    await kube.create(info, new_child(desired, parent=parent))

    observed = await kube.get(info, namespace, "a")
    applied = applied_to(observed, desired)

    assert _differences(observed, applied.obj) == []
    assert (applied.is_changed, applied.is_remembered) == (False, True)
    assert unstructured.uid(applied.obj)


def _differences(left: object, right: object, path: str = "") -> list[str]:
    """Where two values differ, for the message of a failing test."""
    if isinstance(left, dict) and isinstance(right, dict):
        return [each for key in {*left, *right} for each in _differences(left.get(key), right.get(key), f"{path}.{key}")]
    return [] if left == right else [f"{path}: {left!r} is not {right!r}"]
