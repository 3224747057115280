"""A plain client of an API server, with which tests and benches act as users of the cluster."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.controlplane import ControlPlane

USER_AGENT = "metaloop-testbed"
"""Marks our own requests in the audit log."""

NAMESPACES = ResourceInfo(api_version="v1", resource="namespaces", kind="Namespace", namespaced=False)
CONFIG_MAPS = ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True)
EVENTS = ResourceInfo(api_version="v1", resource="events", kind="Event", namespaced=True)
CRDS = ResourceInfo(
    api_version="apiextensions.k8s.io/v1", resource="customresourcedefinitions", kind="CustomResourceDefinition", namespaced=False
)
COMPOSITES = ResourceInfo(
    api_version="metacontroller.k8s.io/v1alpha1", resource="compositecontrollers", kind="CompositeController", namespaced=False
)
DECORATORS = ResourceInfo(
    api_version="metacontroller.k8s.io/v1alpha1", resource="decoratorcontrollers", kind="DecoratorController", namespaced=False
)
COMPONENTS = ResourceInfo(
    api_version="metaloop.dev/v1alpha1", resource="componentcontrollers", kind="ComponentController", namespaced=False
)
MAPS = ResourceInfo(api_version="metacontroller.k8s.io/v1alpha1", resource="mapcontrollers", kind="MapController", namespaced=False)

_NOT_FOUND = 404
_FIRST_ERROR = 400
_TOO_MANY_REQUESTS = 429
_MOST_TRIES = 10
_LINE_BYTES = 64 * 1024 * 1024


class ApiRefused(Exception):
    """The API server answered a request with an error."""

    def __init__(self, code: int, message: str) -> None:
        """Take the HTTP status and the server's message."""
        super().__init__(f"{code}: {message}")
        self.code = code


class Cluster:
    """A client of one API server, with the administrator's rights; made by `connect`."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        """Use a session that has the server's address, its CA and a token."""
        self._session = session

    @staticmethod
    @asynccontextmanager
    async def connect(plane: ControlPlane, *, connections: int = 64) -> AsyncIterator["Cluster"]:
        """A client of a control plane, for as long as the block lasts."""
        tls = _trusting(plane.ca_path)
        connector = aiohttp.TCPConnector(ssl=tls, limit=connections)
        headers = {"Authorization": f"Bearer {plane.admin_token}", "User-Agent": USER_AGENT}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
        async with aiohttp.ClientSession(
            plane.server_url, connector=connector, headers=headers, timeout=timeout, read_bufsize=_LINE_BYTES
        ) as session:
            yield Cluster(session)

    async def request(
        self, method: str, path: str, *, body: bytes | None = None, params: Mapping[str, str] | None = None, content_type: str = ""
    ) -> bytes:
        """The body of a successful answer; raises ApiRefused for any other answer.

        A 429 that says when to come again is obeyed up to ten times, as client-go does: the server did nothing yet.
        """
        headers = {"Content-Type": content_type or "application/json"} if body is not None else None
        tries = 0
        while True:
            tries += 1
            async with self._session.request(method, path, data=body, params=params, headers=headers) as response:
                answer = await response.read()
            retry_after = response.headers.get("Retry-After", "") if response.status == _TOO_MANY_REQUESTS else ""
            if tries < _MOST_TRIES and retry_after.isdecimal():
                await asyncio.sleep(int(retry_after))
                continue
            if response.status >= _FIRST_ERROR:
                raise ApiRefused(response.status, answer.decode(errors="replace")[:500])
            return answer

    async def find(self, resource: ResourceInfo, namespace: str, name: str) -> JsonObject | None:
        """The object, or None."""
        try:
            return loads(await self.request("GET", resource.path(namespace, name)))
        except ApiRefused as refusal:
            if refusal.code == _NOT_FOUND:
                return None
            raise

    async def get(self, resource: ResourceInfo, namespace: str, name: str) -> JsonObject:
        """The object; raises AssertionError if there is none, so that `eventually` can wait for it."""
        found = await self.find(resource, namespace, name)
        if found is None:
            raise AssertionError(f"no {resource.resource} {namespace}/{name}")
        return found

    async def list(self, resource: ResourceInfo, namespace: str = "", *, labels: str = "") -> list[JsonObject]:
        """All objects, or those of a namespace, or those that match a label selector."""
        params = {"labelSelector": labels} if labels else None
        return loads(await self.request("GET", resource.collection_path(namespace), params=params))["items"]

    async def create(self, resource: ResourceInfo, obj: JsonObject, *, namespace: str = "") -> JsonObject:
        """The object as the server stored it."""
        return loads(await self.request("POST", resource.collection_path(namespace), body=dumps(obj)))

    async def replace(self, resource: ResourceInfo, obj: JsonObject, *, namespace: str, name: str) -> JsonObject:
        """The replaced object as the server stored it."""
        return loads(await self.request("PUT", resource.path(namespace, name), body=dumps(obj)))

    async def patch(self, resource: ResourceInfo, namespace: str, name: str, change: JsonObject, *, subresource: str = "") -> JsonObject:
        """The object after a JSON merge patch."""
        path = resource.path(namespace, name) + (f"/{subresource}" if subresource else "")
        return loads(await self.request("PATCH", path, body=dumps(change), content_type="application/merge-patch+json"))

    async def delete(self, resource: ResourceInfo, namespace: str, name: str, *, propagation: str = "Background") -> None:
        """Delete an object, if it exists; finalizers may still keep it afterwards."""
        try:
            await self.request("DELETE", resource.path(namespace, name), params={"propagationPolicy": propagation})
        except ApiRefused as refusal:
            if refusal.code != _NOT_FOUND:
                raise

    async def delete_all(self, resource: ResourceInfo, *, labels: str, namespace: str = "") -> None:
        """Delete all objects that match a label selector; finalizers may still keep them afterwards."""
        await self.request("DELETE", resource.collection_path(namespace), params={"labelSelector": labels})

    async def watch(self, resource: ResourceInfo, namespace: str = "", *, resource_version: str = "") -> AsyncIterator[JsonObject]:
        """The events of one watch, until the server ends it."""
        params = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": resource_version}
        async with self._session.get(resource.collection_path(namespace), params=params) as response:
            response.raise_for_status()
            async for line in response.content:
                yield loads(line)


def _trusting(ca_path: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_path)
