"""Service accounts for tests, with exactly the permissions that a test grants."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.cluster import Cluster

_RBAC = "rbac.authorization.k8s.io"
_ACCOUNTS = ResourceInfo(api_version="v1", resource="serviceaccounts", kind="ServiceAccount", namespaced=True)
_ROLES = ResourceInfo(api_version=f"{_RBAC}/v1", resource="roles", kind="Role", namespaced=True)
_BINDINGS = ResourceInfo(api_version=f"{_RBAC}/v1", resource="rolebindings", kind="RoleBinding", namespaced=True)
_CLUSTER_ROLES = ResourceInfo(api_version=f"{_RBAC}/v1", resource="clusterroles", kind="ClusterRole", namespaced=False)
_CLUSTER_BINDINGS = ResourceInfo(api_version=f"{_RBAC}/v1", resource="clusterrolebindings", kind="ClusterRoleBinding", namespaced=False)


def rule(group: str, resources: Sequence[str], *, verbs: Sequence[str] = ("*",), names: Sequence[str] = ()) -> JsonObject:
    """One RBAC rule; without names, it is for all objects of these resources."""
    allowed: JsonObject = {"apiGroups": [group], "resources": [*resources], "verbs": [*verbs]}
    return {**allowed, "resourceNames": [*names]} if names else allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A service account; made by `create` or `existing`."""

    cluster: Cluster
    namespace: str
    name: str
    kubeconfig_path: Path

    @staticmethod
    async def create(plane: ControlPlane, cluster: Cluster, *, namespace: str, name: str, folder: Path) -> "Account":
        """A new account in a namespace, without any permission; its kubeconfig is in `folder`."""
        await cluster.create(_ACCOUNTS, {"metadata": {"name": name, "namespace": namespace}}, namespace=namespace)
        return await Account.existing(plane, cluster, namespace=namespace, name=name, folder=folder)

    @staticmethod
    async def existing(plane: ControlPlane, cluster: Cluster, *, namespace: str, name: str, folder: Path) -> "Account":
        """An account that exists, with its permissions; its kubeconfig is in `folder`."""
        path = folder / f"{namespace}-{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(_kubeconfig(plane, await token_of(cluster, namespace=namespace, name=name))))
        return Account(cluster=cluster, namespace=namespace, name=name, kubeconfig_path=path)

    async def allow(self, *rules: JsonObject, namespace: str = "", role: str = "test") -> None:
        """Grant the permissions of some rules, in a namespace, or in the whole cluster if that is empty."""
        roles, bindings = (_ROLES, _BINDINGS) if namespace else (_CLUSTER_ROLES, _CLUSTER_BINDINGS)
        metadata: JsonObject = {"name": f"{self.namespace}-{self.name}-{role}"}
        subject: JsonObject = {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}
        reference: JsonObject = {"apiGroup": _RBAC, "kind": roles.kind, "name": metadata["name"]}
        await self.cluster.create(roles, {"metadata": metadata, "rules": [*rules]}, namespace=namespace)
        await self.cluster.create(bindings, {"metadata": metadata, "subjects": [subject], "roleRef": reference}, namespace=namespace)


async def token_of(cluster: Cluster, *, namespace: str, name: str) -> str:
    """A token of a service account, valid for an hour."""
    request: JsonObject = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await cluster.request("POST", f"{_ACCOUNTS.path(namespace, name)}/token", body=dumps(request))
    return loads(answer)["status"]["token"]


def _kubeconfig(plane: ControlPlane, token: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": plane.server_url, "certificate-authority": str(plane.ca_path)}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
