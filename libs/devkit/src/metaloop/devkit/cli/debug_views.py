"""Reads the debug views of watchers: at a URL, or of the pods of a cluster through the proxy of its API server."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

import httpx

from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.kube.credentials import Credentials, Identity
from metaloop.common.objects import unstructured
from metaloop.devkit.errors import ClusterUnreachable, DevkitError

TOKEN_HEADER: Final = "X-Metaloop-Debug-Token"  # noqa: S105 - the name of a header
_TIMEOUT_SECONDS: Final = 10.0
_OK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugOptions:
    """Where the views are, as the options of a command say."""

    url: str = ""
    """Such as http://127.0.0.1:8091; empty for the pods of the cluster."""
    token: str = field(default="", repr=False)
    kubeconfig: str = ""
    namespace: str = "metaloop"
    """Where Metaloop is installed."""
    port: int = 8091
    """METALOOP_DEBUG_PORT of the watchers in the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugViews:
    """The views of some watchers."""

    client: httpx.AsyncClient
    roots: Sequence[str]
    """The URL of each watcher's views."""

    async def read(self, view: str, **params: str) -> list[JsonObject]:
        """What a view shows, of all watchers. Raises DevkitError where one of them refuses, or does not answer."""
        return [item for root in self.roots for item in await self._of(root, view, params)]

    async def _of(self, root: str, view: str, params: Mapping[str, str]) -> list[JsonObject]:
        try:
            answer = await self.client.get(f"{root}/debug/{view}", params=dict(params))
        except httpx.HTTPError as problem:
            raise DevkitError(f"{root} does not answer: {problem or type(problem).__name__}") from problem
        if answer.status_code != _OK:
            raise DevkitError(f"{root}/debug/{view} answered {answer.status_code}: {answer.text[:300].strip()}")
        shown = answer.json()
        return [item for item in shown if is_object(item)] if is_array(shown) else []


@asynccontextmanager
async def debug_views(options: DebugOptions) -> AsyncIterator[DebugViews]:
    """The views that the options name, for as long as the block lasts.

    Raises DevkitError where there is no watcher, and ClusterUnreachable.
    """
    guard = {TOKEN_HEADER: options.token} if options.token else {}
    if options.url:
        async with httpx.AsyncClient(headers=guard, timeout=_TIMEOUT_SECONDS, trust_env=False) as client:
            yield DebugViews(client=client, roots=[options.url.rstrip("/").removesuffix("/debug")])
        return
    identity = (await Credentials.read(options.kubeconfig)).identity
    async with _api_server(identity, guard) as client:
        yield DebugViews(client=client, roots=await _watchers(client, identity.server_url, options))


def _api_server(identity: Identity, headers: Mapping[str, str]) -> httpx.AsyncClient:
    login = {"Authorization": identity.authorization} if identity.authorization else {}
    verify = identity.tls if identity.tls is not None else False
    return httpx.AsyncClient(
        headers={**headers, **login}, verify=verify, timeout=_TIMEOUT_SECONDS, proxy=identity.proxy_url, trust_env=False
    )


async def _watchers(client: httpx.AsyncClient, server_url: str, options: DebugOptions) -> list[str]:
    """The views of each watcher's pod, through the API server."""
    pods = f"{server_url}/api/v1/namespaces/{quote(options.namespace)}/pods"
    try:
        answer = await client.get(pods, params={"labelSelector": "app.kubernetes.io/name=watcher"})
    except httpx.HTTPError as problem:
        raise ClusterUnreachable(f"{server_url} does not answer: {problem or type(problem).__name__}") from problem
    if answer.status_code != _OK:
        raise ClusterUnreachable(f"{pods} answered {answer.status_code}: {answer.text[:300].strip()}")
    names = [unstructured.name(pod) for pod in unstructured.child_objects(answer.json(), "items") if not unstructured.is_deleting(pod)]
    if not names:
        raise DevkitError(f"there is no pod of a watcher in the namespace {options.namespace}: name another one, or the URL of its views")
    return [f"{pods}/{quote(name)}:{options.port}/proxy" for name in names]
