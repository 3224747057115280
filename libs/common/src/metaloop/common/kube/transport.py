"""Sends one request to the API server and says what came of it: the answer's bytes, or the exception for its failure.

What a request costs us counts, since each sync makes several: URLs come already encoded, headers are made once per identity, and nothing
is compressed (that costs both sides more than a cluster's network does).
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from time import perf_counter

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from metaloop.common.errors import MetaloopError
from metaloop.common.kube.credentials import Credentials, Identity
from metaloop.common.kube.errors import Unanswered, Unauthorized, api_status, refusal
from metaloop.common.telemetry import metrics

JSON = "application/json"

_WATCH_BUFFER_BYTES = 256 * 1024
_IDLE_CONNECTION_SECONDS = 60.0
"""Less than the 90 s after which the API server closes idle connections: it should not close one that we are about to use."""

_USER_AGENT = f"metaloop/{version('metaloop-common')}"
_BROKEN = (aiohttp.ClientError, OSError, TimeoutError)

_requests_total = metrics.counter("metaloop_kube_requests", "Requests to the API server.", ("method", "code"))
_request_seconds = metrics.histogram("metaloop_kube_request_seconds", "Time until the API server had answered.", ("method",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request: `target` is the encoded path with its query."""

    method: str
    target: str
    body: bytes | None = None
    accept: str = JSON
    content_type: str = JSON

    def __str__(self) -> str:
        """Without the query: it differs from one try to the next, and people are told once of what fails in the same way again and again."""
        return f"{self.method} {self.target.partition('?')[0]}"


class Transport:
    """Connections to one API server, as one identity at a time."""

    def __init__(self, credentials: Credentials, *, requests: aiohttp.ClientSession, watches: aiohttp.ClientSession) -> None:
        self._credentials = credentials
        self._requests = requests
        self._watches = watches

    @staticmethod
    @asynccontextmanager
    async def connect(credentials: Credentials, *, timeout_seconds: float, connections: int) -> AsyncIterator["Transport"]:
        """A transport for as long as the block lasts; it connects when it is first used."""
        bounded = aiohttp.ClientTimeout(total=timeout_seconds)
        # A watch lasts for minutes. In the same pool, watches would starve requests; and only their beginning is timed.
        unbounded = aiohttp.ClientTimeout(total=None, sock_connect=timeout_seconds)
        async with _session(connections, bounded) as requests, _session(0, unbounded) as watches:
            yield Transport(credentials, requests=requests, watches=watches)

    async def exchange(self, request: Request) -> bytes:
        """The body of a successful answer; where only our credentials had run out, that of a second try with new ones."""
        identity = await self._identity()
        try:
            return await self._exchange(request, identity)
        except Unauthorized:
            await self._credentials.replace_rejected(identity)
            return await self._exchange(request, self._credentials.identity)

    async def lines(self, request: Request, on_open: Callable[[], None]) -> AsyncGenerator[bytes, None]:
        """The lines of an answer as they come, until the API server ends it; raises Unanswered if it breaks off instead."""
        identity = await self._identity()
        try:
            async with _sent(self._watches, request, identity, read_bufsize=_WATCH_BUFFER_BYTES) as answer:
                _requests_total.labels("WATCH", answer.status).inc()
                if answer.status != 200:
                    raise _failure(request, answer, await answer.read())
                on_open()
                try:
                    async for line in _split(answer.content, request):
                        yield line
                finally:
                    _cut(answer)
        except Unauthorized:
            await self._credentials.replace_rejected(identity)
            raise
        except _BROKEN as problem:
            raise Unanswered(f"{request}: {_said(problem)}") from problem

    async def _identity(self) -> Identity:
        credentials = self._credentials
        if credentials.is_due:
            await credentials.reread(credentials.identity)
        return credentials.identity

    async def _exchange(self, request: Request, identity: Identity) -> bytes:
        began = perf_counter()
        try:
            async with _sent(self._requests, request, identity) as answer:
                body = await answer.read()
        except _BROKEN as problem:
            _requests_total.labels(request.method, "none").inc()
            raise Unanswered(f"{request}: {_said(problem)}") from problem
        _request_seconds.labels(request.method).observe(perf_counter() - began)
        _requests_total.labels(request.method, answer.status).inc()
        if answer.status >= 300:
            raise _failure(request, answer, body)
        return body


def _session(connections: int, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=_IDLE_CONNECTION_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        timeout=timeout,
    )


def _sent(
    session: aiohttp.ClientSession, request: Request, identity: Identity, *, read_bufsize: int = 2**16
) -> "aiohttp.client._RequestContextManager":
    content_type = request.content_type if request.body is not None else ""
    return session.request(
        request.method,
        URL(identity.server_url + request.target, encoded=True),
        data=request.body,
        headers=_headers(identity.authorization, request.accept, content_type),
        ssl=identity.tls or True,  # in the key of pooled connections: those of an identity that is over are not used again
        server_hostname=identity.server_hostname,
        proxy=identity.proxy_url,
        allow_redirects=False,
        read_bufsize=read_bufsize,
    )


def _cut(answer: aiohttp.ClientResponse) -> None:
    """End a watch in the middle: with TLS, a polite end waits for a last word that never comes."""
    if answer.connection and (socket := answer.connection.transport):
        socket.abort()


@lru_cache(maxsize=64)
def _headers(authorization: str, accept: str, content_type: str) -> CIMultiDict[str]:
    headers = CIMultiDict({"Accept": accept, "User-Agent": _USER_AGENT})
    if content_type:
        headers["Content-Type"] = content_type
    if authorization:
        headers["Authorization"] = authorization
    return headers


def _failure(request: Request, answer: aiohttp.ClientResponse, body: bytes) -> MetaloopError:
    status = api_status(answer.status, body)
    return refusal(status, request=str(request), retry_after_seconds=_seconds(answer.headers.get("Retry-After", "")))


def _seconds(retry_after: str) -> float | None:
    """The API server sends whole seconds; a date, which a proxy may send, is no wish that we follow."""
    return float(retry_after) if retry_after.isdecimal() else None


def _said(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}".rstrip(": ")


async def _split(content: aiohttp.StreamReader, request: Request) -> AsyncGenerator[bytes, None]:
    """Lines of any length: the chunks of an unfinished one are kept apart, and joined once when its end has come."""
    unfinished: list[bytes] = []
    async for chunk in content.iter_any():
        head, *rest = chunk.split(b"\n")
        unfinished.append(head)
        if not rest:
            continue
        yield b"".join(unfinished)
        *whole, tail = rest
        for line in whole:
            yield line
        unfinished = [tail]
    if any(unfinished):
        raise Unanswered(f"{request}: ended within a line")
