"""Sends one request to the API server and says what came of it: the answer's bytes, or the exception for its failure.

What a request costs us counts, since each sync makes several: URLs come already encoded, headers are made once per identity, and nothing
is compressed (that costs both sides more than a cluster's network does). Watches, and whatever has to go through a proxy, are aiohttp's.
"""

import asyncio
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
from metaloop.common.http.answer import Answer
from metaloop.common.http.peer import Peer, header_lines
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

    def __init__(self, credentials: Credentials, session: aiohttp.ClientSession, *, timeout_seconds: float) -> None:
        self._credentials = credentials
        self._session = session
        self._timeout_seconds = timeout_seconds
        self._peer = _peer(credentials.identity, connect_seconds=timeout_seconds)
        self._peers_identity = credentials.identity

    @staticmethod
    @asynccontextmanager
    async def connect(credentials: Credentials, *, timeout_seconds: float) -> AsyncIterator["Transport"]:
        """A transport for as long as the block lasts; it connects when it is first used."""
        async with _session(connect_seconds=timeout_seconds) as session:
            transport = Transport(credentials, session, timeout_seconds=timeout_seconds)
            try:
                yield transport
            finally:
                transport.close()

    def close(self) -> None:
        """Close the connections of requests."""
        self._peer.close()

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
            async with _sent(self._session, request, identity) as answer:
                _requests_total.labels("WATCH", answer.status).inc()
                if answer.status != 200:
                    raise _failure(request, await _whole(answer))
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
            async with asyncio.timeout(self._timeout_seconds):
                answer = await self._answer_to(request, identity)
        except _BROKEN as problem:
            _requests_total.labels(request.method, "none").inc()
            late = f"no answer within {self._timeout_seconds:g} s" if isinstance(problem, TimeoutError) else ""
            raise Unanswered(f"{request}: {late or _said(problem)}") from problem
        _request_seconds.labels(request.method).observe(perf_counter() - began)
        _requests_total.labels(request.method, answer.status).inc()
        if answer.status >= 300:
            raise _failure(request, answer)
        return answer.body

    async def _answer_to(self, request: Request, identity: Identity) -> Answer:
        if identity.proxy_url:
            async with _sent(self._session, request, identity) as response:
                return await _whole(response)
        headers = _lines(identity.authorization, request.accept, _content_type(request))
        return await self._peer_for(identity).ask(request.method, request.target, headers, request.body)

    def _peer_for(self, identity: Identity) -> Peer:
        """The API server, by connections that this identity's certificate opened: those of one that is over are not used again."""
        if identity is not self._peers_identity:
            if _opens(identity) != _opens(self._peers_identity):
                self._peer.close()
                self._peer = _peer(identity, connect_seconds=self._timeout_seconds)
            self._peers_identity = identity
        return self._peer


def _opens(identity: Identity) -> tuple[object, ...]:
    """What of an identity a connection depends on; the rest goes with each request."""
    return identity.server_url, identity.tls, identity.server_hostname


def _peer(identity: Identity, *, connect_seconds: float) -> Peer:
    return Peer(
        identity.server_url,
        tls=identity.tls,
        server_hostname=identity.server_hostname,
        idle_seconds=_IDLE_CONNECTION_SECONDS,
        connect_seconds=connect_seconds,
    )


def _session(*, connect_seconds: float) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_CONNECTION_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),  # a watch lasts for minutes: only its beginning is timed
        read_bufsize=_WATCH_BUFFER_BYTES,
    )


def _sent(session: aiohttp.ClientSession, request: Request, identity: Identity) -> "aiohttp.client._RequestContextManager":
    return session.request(
        request.method,
        URL(identity.server_url + request.target, encoded=True),
        data=request.body,
        headers=_headers(identity.authorization, request.accept, _content_type(request)),
        ssl=identity.tls or True,  # in the key of pooled connections: those of an identity that is over are not used again
        server_hostname=identity.server_hostname,
        proxy=identity.proxy_url,
        allow_redirects=False,
    )


async def _whole(response: aiohttp.ClientResponse) -> Answer:
    return Answer(response.status, response.raw_headers, await response.read())


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


@lru_cache(maxsize=64)
def _lines(authorization: str, accept: str, content_type: str) -> bytes:
    return header_lines(_headers(authorization, accept, content_type))


def _content_type(request: Request) -> str:
    return request.content_type if request.body is not None else ""


def _failure(request: Request, answer: Answer) -> MetaloopError:
    status = api_status(answer.status, answer.body)
    return refusal(status, request=str(request), retry_after_seconds=_seconds(answer.header("Retry-After")))


def _seconds(retry_after: str) -> float | None:
    """The API server sends whole seconds; a date, which a proxy may send, is no wish that we follow."""
    return float(retry_after) if retry_after.isdecimal() else None


def _said(problem: BaseException) -> str:
    return str(problem) or type(problem).__name__


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
