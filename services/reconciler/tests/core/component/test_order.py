"""The canonical order of kinds, when they are applied and when they are deleted."""

import pytest
from components import crd, manifest, targets

from metaloop.common.json import JsonObject
from metaloop.reconciler.core.component.inventory import scheduled
from metaloop.reconciler.core.component.order import apply_priority, delete_priority, grouped
from metaloop.reconciler.core.component.waves import priority_of

APPLIED = {
    -4: [("", "Namespace")],
    -3: [
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ],
    -2: [
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("networking.k8s.io", "IngressClass"),
        ("node.k8s.io", "RuntimeClass"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "StorageClass"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "Role"),
    ],
    -1: [
        ("", "ConfigMap"),
        ("", "Secret"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
    ],
    0: [("", "Service"), ("apps", "Deployment"), ("batch", "Job"), ("example.com", "ConfigMap")],
    1: [("apiregistration.k8s.io", "APIService")],
}
DELETED = {
    -1: [("apiextensions.k8s.io", "CustomResourceDefinition"), ("apiregistration.k8s.io", "APIService")],
    0: [("apps", "Deployment"), ("rbac.authorization.k8s.io", "ClusterRole"), ("example.com", "Secret")],
    1: [
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ],
    2: [("", "Service"), ("", "ConfigMap"), ("", "Secret")],
    3: [("", "Namespace")],
    4: [
        ("networking.k8s.io", "IngressClass"),
        ("node.k8s.io", "RuntimeClass"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "StorageClass"),
    ],
}


@pytest.mark.parametrize(("priority", "group", "kind"), [(p, *each) for p, kinds in APPLIED.items() for each in kinds])
def test_kinds_are_applied_in_their_canonical_order(priority: int, group: str, kind: str):
    assert apply_priority(group, kind) == priority


@pytest.mark.parametrize(("priority", "group", "kind"), [(p, *each) for p, kinds in DELETED.items() for each in kinds])
def test_kinds_are_deleted_in_their_canonical_order(priority: int, group: str, kind: str):
    assert delete_priority(group, kind) == priority


MIXED: tuple[JsonObject, ...] = (
    manifest("Deployment", "d", api_version="apps/v1"),
    manifest("ConfigMap", "second"),
    manifest("Namespace", "n"),
    manifest("ConfigMap", "first"),
    crd(),
    manifest("ClusterRole", "r", api_version="rbac.authorization.k8s.io/v1"),
    manifest("Service", "s"),
)


def test_objects_of_equal_priority_are_applied_in_the_order_of_the_manifests():
    names = [target.key.name for target in sorted(targets(*MIXED), key=priority_of)]

    assert names == ["n", "widgets.example.com", "r", "second", "first", "d", "s"]


def test_objects_of_equal_priority_are_deleted_in_the_order_of_the_manifests():
    names = [key.name for key in scheduled({}, targets(*MIXED))]

    assert names == ["widgets.example.com", "d", "r", "second", "first", "s", "n"]


def test_delete_order_comes_before_the_canonical_order():
    objects = targets(manifest("Namespace", "n", delete_order="-1"), manifest("ConfigMap", "c"), manifest("Service", "s", delete_order="1"))

    assert [key.name for key in scheduled({}, objects)] == ["n", "c", "s"]


def test_groups_come_in_order_and_keep_the_order_of_their_members():
    assert [*grouped([3, 11, 1, 12, 2], lambda number: number // 10)] == [(0, [3, 1, 2]), (1, [11, 12])]
