"""KubeClient: requests to an API server, in raw bytes and JSON instead of generated models."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias
from urllib.parse import quote, urlencode

from metaloop.common.errors import ApiStatus
from metaloop.common.http.connection import Permit, always
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.body import object_of
from metaloop.common.kube.credentials import Credentials
from metaloop.common.kube.errors import Invalid, TooManyRequests
from metaloop.common.kube.request_limiter import RequestLimiter
from metaloop.common.kube.transport import JSON, Exchanges, Request, Transport
from metaloop.common.machine import randomness
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.unstructured import name as name_of
from metaloop.common.objects.unstructured import namespace as namespace_of

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

Params: TypeAlias = Mapping[str, str]
Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]

REQUEST_SECONDS = 30.0
"""The timeout of one request. The API server itself gives up after 60 s, which is too long for a sync."""
CONNECTIONS = 64
"""The maximum of requests in flight. More of them wait here rather than in the API server's queues."""
_TRIES = 4
_MAX_WAIT_SECONDS = 1.0


def _ignore() -> None:
    """Do nothing when a watch opens."""


class KubeClient:
    """A client for one API server.

    Every method may raise the errors of kube/errors.py; docstrings name those that a caller should expect.
    """

    def __init__(self, transport: Exchanges, *, limiter: RequestLimiter, permit: Permit = always, acting_as: str = "") -> None:
        self._transport = transport
        self._limiter = limiter
        self._permit = permit
        self._acting_as = acting_as

    @staticmethod
    @asynccontextmanager
    async def connect(
        kubeconfig: str = "", *, timeout_seconds: float = REQUEST_SECONDS, connections: int = CONNECTIONS
    ) -> AsyncIterator["KubeClient"]:
        """A client while the block runs; it connects on first use. Raises InvalidKubeconfig.

        Without `kubeconfig` it uses $KUBECONFIG, else the service account of this pod, else ~/.kube/config.
        """
        credentials = await Credentials.read(kubeconfig)
        async with Transport.connect(credentials, timeout_seconds=timeout_seconds) as transport:
            yield KubeClient(transport, limiter=RequestLimiter(maximum=connections))

    def permitted_by(self, permit: Permit) -> "KubeClient":
        """The same client, whose requests and retries are sent only if `permit` does not raise at that moment."""
        return KubeClient(self._transport, limiter=self._limiter, permit=permit, acting_as=self._acting_as)

    def acting_as(self, user: str) -> "KubeClient":
        """The same client, whose requests are sent on behalf of a user.

        The API server adds the groups that a service account is in.
        """
        return KubeClient(self._transport, limiter=self._limiter, permit=self._permit, acting_as=user)

    async def request(  # noqa: PLR0913 - the parts of an HTTP request
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

        A rejected request (429) was not executed. It is sent again, up to three times, if the API server asks for a
        wait of a second or less.
        """
        request = Request(
            method=method,
            target=_target(path, params),
            body=body,
            content_type=content_type,
            accept=accept,
            permit=self._permit,
            acting_as=self._acting_as,
        )
        for tried in range(_TRIES):
            await self._limiter.acquire(is_retry=tried > 0)
            try:
                answer = await self._transport.exchange(request)
                self._limiter.accepted()
            except TooManyRequests as rejected:
                self._limiter.rejected()
                wait_seconds = rejected.retry_after_seconds or _MAX_WAIT_SECONDS
                if wait_seconds > _MAX_WAIT_SECONDS or tried == _TRIES - 1:
                    raise
                await asyncio.sleep(wait_seconds * randomness().uniform(1.0, 1.25))
            else:
                return answer
            finally:
                self._limiter.release()
        raise AssertionError("the last try returns or raises")

    async def get(self, info: ResourceInfo, namespace: str, name: str) -> JsonObject:
        """The object. Raises NotFound."""
        return object_of(await self.request("GET", object_path(info, namespace, name)))

    async def list_page(self, info: ResourceInfo, namespace: str = "", params: Params | None = None) -> JsonObject:
        """One page of a list; `params` hold limit, continue token and selectors. Raises Expired."""
        return object_of(await self.request("GET", info.collection_path(_escaped(namespace)), params=params))

    async def create(self, info: ResourceInfo, obj: JsonObject, *, params: Params | None = None) -> JsonObject:
        """The created object. Raises AlreadyExists."""
        return object_of(await self.request("POST", collection_path(info, namespace_of(obj)), body=dumps(obj), params=params))

    async def replace(self, info: ResourceInfo, obj: JsonObject, subresource: str = "", *, params: Params | None = None) -> JsonObject:
        """The object after it was replaced by `obj`.

        Raises NotFound, and Conflict if the resourceVersion of `obj` is outdated.
        """
        path = object_path(info, namespace_of(obj), name_of(obj), subresource)
        return object_of(await self.request("PUT", path, body=dumps(obj), params=params))

    async def patch(  # noqa: PLR0913, PLR0917 - the object, the patch and its options
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
        """The object after the patch.

        Raises Conflict if the resourceVersion in the patch is outdated, or if an apply sets another manager's field.
        Raises Invalid if the uid differs.
        """
        path = object_path(info, namespace, name, subresource)
        return object_of(await self.request("PATCH", path, body=body, params=params, content_type=content_type))

    async def delete(  # noqa: PLR0913 - the object and the options of its deletion
        self,
        info: ResourceInfo,
        namespace: str,
        name: str,
        *,
        uid: str,
        resource_version: str = "",
        propagation: Propagation = "Background",
    ) -> JsonObject:
        """The object if finalizers or a grace period still keep it, else a Status.

        Raises NotFound, and Conflict if the uid differs.
        """
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
        self, path: str, params: Params | None = None, *, on_open: Callable[[], None] = _ignore
    ) -> AsyncGenerator[list[bytes], None]:
        """The lines of a watch, each list with those that arrived together; close it with `contextlib.aclosing`.

        Raises Expired, and Unavailable if the connection breaks.

        It ends when the API server ends it, every few minutes. There is no timeout for silence: that is the caller's
        decision, who times each read. `on_open` is called when the server has accepted the watch, which may be long
        before the first line.
        """
        return self._transport.lines(Request(method="GET", target=_target(path, {"watch": "true", **(params or {})})), on_open)


def collection_path(info: ResourceInfo, namespace: str) -> str:
    """The encoded path at which objects of `namespace` are created.

    Raises Invalid if the namespace is missing, or is not a name.
    """
    if info.namespaced and not namespace:
        raise Invalid(_invalid(f"{info.kind} needs a namespace"))
    if namespace in _DOT_SEGMENTS:
        raise Invalid(_invalid(f"{namespace!r} is not a name of a namespace"))
    return info.collection_path(_escaped(namespace))


def object_path(info: ResourceInfo, namespace: str, name: str, subresource: str = "") -> str:
    """The encoded path of one object. Raises Invalid for a name that would turn it into the path of something else."""
    if not name or name in _DOT_SEGMENTS:
        raise Invalid(_invalid(f"{name!r} is not a name of a {info.kind}"))
    path = f"{collection_path(info, namespace)}/{_escaped(name)}"
    return f"{path}/{subresource}" if subresource else path


def _invalid(message: str) -> ApiStatus:
    return ApiStatus(code=422, reason="Invalid", message=message)


_DOT_SEGMENTS = frozenset({".", ".."})
"""Segments that every parser of paths resolves."""
_PLAIN = re.compile(r"[a-zA-Z0-9._:-]*")


def _escaped(segment: str) -> str:
    """One segment of a path. Names may come from webhooks: none may reach into another segment."""
    return segment if _PLAIN.fullmatch(segment) else quote(segment, safe="")


def _target(path: str, params: Params | None) -> str:
    return f"{path}?{urlencode(params)}" if params else path
