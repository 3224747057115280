"""KubeClient: what can be asked of an API server, with raw bytes or JSON in hand instead of generated models."""

import asyncio
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias
from urllib.parse import quote, urlencode

from metaloop.common.errors import ApiStatus
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.body import object_of
from metaloop.common.kube.credentials import Credentials
from metaloop.common.kube.errors import Invalid, TooManyRequests
from metaloop.common.kube.request_limiter import RequestLimiter
from metaloop.common.kube.transport import JSON, Request, Transport
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.unstructured import name as name_of
from metaloop.common.objects.unstructured import namespace as namespace_of

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

Params: TypeAlias = Mapping[str, str]
Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]

REQUEST_SECONDS = 30.0
"""How long one request may take in all: the API server itself gives up after 60 s, and a sync should not wait so long."""
CONNECTIONS = 64
"""How many requests are under way at once, at most; more wait here rather than in the API server's queues."""
_TRIES = 4
_LONGEST_WAIT_SECONDS = 1.0


def _nobody_cares() -> None:
    """Who opens a watch need not know when."""


class KubeClient:
    """One API server. Every method raises what kube/errors.py lists; only what a caller has to expect is named again."""

    def __init__(self, transport: Transport, *, limiter: RequestLimiter) -> None:
        self._transport = transport
        self._limiter = limiter

    @staticmethod
    @asynccontextmanager
    async def connect(
        kubeconfig: str = "", *, timeout_seconds: float = REQUEST_SECONDS, connections: int = CONNECTIONS
    ) -> AsyncIterator["KubeClient"]:
        """A client for as long as the block lasts; it connects when it is first used. Raises InvalidKubeconfig.

        Without `kubeconfig` it takes $KUBECONFIG, the service account of the pod that we run in, or ~/.kube/config.
        """
        credentials = await Credentials.read(kubeconfig)
        async with Transport.connect(credentials, timeout_seconds=timeout_seconds) as transport:
            yield KubeClient(transport, limiter=RequestLimiter(maximum=connections))

    async def request(  # noqa: PLR0913 - one request has so many parts
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        params: Params | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        """The body of a successful answer.

        A request that was turned away unexecuted (429) is sent again a few times, if the API server wants us back within a second.
        """
        request = Request(method=method, target=_target(path, params), body=body, content_type=content_type, accept=accept)
        for tried in range(_TRIES):
            await self._limiter.acquire(is_retry=tried > 0)
            try:
                answer = await self._transport.exchange(request)
                self._limiter.accepted()
            except TooManyRequests as rejected:
                self._limiter.rejected()
                wait_seconds = rejected.retry_after_seconds or _LONGEST_WAIT_SECONDS
                if wait_seconds > _LONGEST_WAIT_SECONDS or tried == _TRIES - 1:
                    raise
                await asyncio.sleep(wait_seconds * random.uniform(1.0, 1.25))  # noqa: S311 - it spreads load and guards nothing
            else:
                return answer
            finally:
                self._limiter.release()
        raise AssertionError("the last try returns or raises")

    async def get(self, info: ResourceInfo, namespace: str, name: str) -> JsonObject:
        """The object as it is. Raises NotFound."""
        return object_of(await self.request("GET", object_path(info, namespace, name)))

    async def list_page(self, info: ResourceInfo, namespace: str = "", params: Params | None = None) -> JsonObject:
        """One page of a list, as the API server sends it; `params` hold limit, continue and selectors. Raises Expired."""
        return object_of(await self.request("GET", info.collection_path(_escaped(namespace)), params=params))

    async def create(self, info: ResourceInfo, obj: JsonObject, *, params: Params | None = None) -> JsonObject:
        """The object as it was created. Raises AlreadyExists."""
        return object_of(await self.request("POST", collection_path(info, namespace_of(obj)), body=dumps(obj), params=params))

    async def replace(self, info: ResourceInfo, obj: JsonObject, subresource: str = "", *, params: Params | None = None) -> JsonObject:
        """The object as it is with `obj` in its place. Raises NotFound, and Conflict if `obj` has a resourceVersion that is over."""
        path = object_path(info, namespace_of(obj), name_of(obj), subresource)
        return object_of(await self.request("PUT", path, body=dumps(obj), params=params))

    async def patch(  # noqa: PLR0913, PLR0917 - which object, what, and how
        self,
        info: ResourceInfo,
        namespace: str,
        name: str,
        body: bytes,
        content_type: str,
        params: Params | None = None,
        *,
        subresource: str = "",
    ) -> JsonObject:
        """The object as it is after the patch.

        Raises Conflict if the patch names a resourceVersion that is over or, applied, a field of another manager; Invalid for another uid.
        """
        path = object_path(info, namespace, name, subresource)
        return object_of(await self.request("PATCH", path, body=body, params=params, content_type=content_type))

    async def delete(  # noqa: PLR0913 - which object, and how
        self,
        info: ResourceInfo,
        namespace: str,
        name: str,
        *,
        uid: str,
        resource_version: str = "",
        propagation: Propagation = "Background",
    ) -> JsonObject:
        """The object if finalizers or grace keep it for now, else a Status. Raises NotFound, and Conflict if it is another by now."""
        preconditions: JsonObject = {"uid": uid}
        if resource_version:
            preconditions["resourceVersion"] = resource_version
        options: JsonObject = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": preconditions,
            "propagationPolicy": propagation,
        }
        return object_of(await self.request("DELETE", object_path(info, namespace, name), body=dumps(options)))

    def watch_lines(
        self, path: str, params: Params | None = None, *, on_open: Callable[[], None] = _nobody_cares
    ) -> AsyncGenerator[bytes, None]:
        """The lines of a watch: close it with `contextlib.aclosing`. Raises Unavailable if it breaks off, and Expired.

        It ends when the API server ends it, which it does every few minutes. Silence is for the caller to judge. `on_open` is called when
        the server agreed to it, which may be long before the first line.
        """
        return self._transport.lines(Request(method="GET", target=_target(path, {"watch": "true", **(params or {})})), on_open)


def collection_path(info: ResourceInfo, namespace: str) -> str:
    """The encoded path that objects of `namespace` are created at. Raises Invalid if the resource needs a namespace, and for one that is no name."""
    if info.namespaced and not namespace:
        raise Invalid(_never_sent(f"{info.kind} needs a namespace"))
    if namespace in _STEPS:
        raise Invalid(_never_sent(f"{namespace!r} is no name of a namespace"))
    return info.collection_path(_escaped(namespace))


def object_path(info: ResourceInfo, namespace: str, name: str, subresource: str = "") -> str:
    """The encoded path of one object. Raises Invalid for a name that would make it the path of something else."""
    if not name or name in _STEPS:
        raise Invalid(_never_sent(f"{name!r} is no name of a {info.kind}"))
    path = f"{collection_path(info, namespace)}/{_escaped(name)}"
    return f"{path}/{subresource}" if subresource else path


def _never_sent(message: str) -> ApiStatus:
    return ApiStatus(code=422, reason="Invalid", message=message)


_STEPS = frozenset({".", ".."})
"""What every reader of a path takes for a step in it."""
_PLAIN = re.compile(r"[a-zA-Z0-9._:-]*")


def _escaped(segment: str) -> str:
    """Names come from webhooks too: none of them may reach beyond its own segment of a path."""
    return segment if _PLAIN.fullmatch(segment) else quote(segment, safe="")


def _target(path: str, params: Params | None) -> str:
    return f"{path}?{urlencode(params)}" if params else path
