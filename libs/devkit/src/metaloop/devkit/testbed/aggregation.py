"""An aggregated API: a second, real API server that the first one forwards requests to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.processes import Daemon
from metaloop.devkit.testbed.builtin import SERVICES
from metaloop.devkit.testbed.cluster import Cluster
from metaloop.devkit.testbed.eventually import expect
from metaloop.devkit.testbed.lab import Platform, install_parent
from metaloop.devkit.testbed.manifests import parent_resource

API_SERVICES = ResourceInfo(api_version="apiregistration.k8s.io/v1", resource="apiservices", kind="APIService", namespaced=False)

_SERVICE = "aggregated"
_NAMESPACE = "default"


def guests(group: str) -> ResourceInfo:
    """The resource of a parent kind in an API group of its own."""
    return replace(parent_resource("guests"), api_version=f"{group}.aggregated.example.com/v1")


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatedApi:
    """The second API server, and how to register its groups with the first."""

    plane: ControlPlane
    front: Cluster
    """The first API server, which all clients use."""
    behind: Cluster
    """The second API server, used directly."""

    @staticmethod
    @asynccontextmanager
    async def start(platform: Platform) -> AsyncIterator["AggregatedApi"]:
        """The second API server, ready for as long as the block lasts; none of its groups is registered yet."""
        async with platform.plane.aggregated() as plane, Cluster.connect(plane) as behind:
            api = AggregatedApi(plane=plane, front=platform.cluster, behind=behind)
            await api.front.create(SERVICES, _service(), namespace=_NAMESPACE)
            yield api
            await api.front.delete(SERVICES, _NAMESPACE, _SERVICE)

    @property
    def server(self) -> Daemon:
        """The process of the second API server."""
        return self.plane.apiserver

    async def install(self, resource: ResourceInfo) -> None:
        """Install a kind in the second API server; the first does not know it yet."""
        await install_parent(self.behind, resource)

    async def register(self, resource: ResourceInfo) -> None:
        """Have the first API server forward requests for the kind's group."""
        await self.front.create(API_SERVICES, _api_service(resource, port=urlsplit(self.plane.server_url).port or 0))

    async def unregister(self, resource: ResourceInfo) -> None:
        """Have the first API server no longer serve the kind's group."""
        await self.front.delete(API_SERVICES, "", _name(resource))

    async def is_available(self, resource: ResourceInfo, *, status: str = "True") -> None:
        """Raise AssertionError unless the condition Available of the group has this status."""
        found = await self.front.get(API_SERVICES, "", _name(resource))
        conditions = unstructured.child_object(found, "status").get("conditions")
        found_statuses = (
            [each["status"] for each in conditions if is_object(each) and each["type"] == "Available"] if is_array(conditions) else []
        )
        expect(found_statuses == [status], f"conditions of {resource.group} are {conditions}")


def _name(resource: ResourceInfo) -> str:
    return f"v1.{resource.group}"


def _service() -> JsonObject:
    """A Service that resolves to loopback: an APIService can only refer to a Service."""
    metadata: JsonObject = {"name": _SERVICE}
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": metadata,
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def _api_service(resource: ResourceInfo, *, port: int) -> JsonObject:
    return {
        "apiVersion": API_SERVICES.api_version,
        "kind": API_SERVICES.kind,
        "metadata": {"name": _name(resource)},
        "spec": {
            "group": resource.group,
            "version": "v1",
            "service": {"name": _SERVICE, "namespace": _NAMESPACE, "port": port},
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 1000,
            "versionPriority": 10,
        },
    }
