"""Sends one request to the API server; returns the answer's bytes or raises the exception for its failure.

Each sync sends several requests, so their cost counts: URLs come encoded, headers are built once per identity, and
nothing is compressed (inside a cluster, compression costs more than the network). Watches, and everything that goes
through a proxy, use aiohttp.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from time import perf_counter
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict
from prometheus_client import Counter, Histogram
from yarl import URL

from metaloop.common.errors import MetaloopError
from metaloop.common.http.answer import Answer
from metaloop.common.http.connection import Permit, always
from metaloop.common.http.peer import Peer, header_lines
from metaloop.common.kube.credentials import Credentials, Identity
from metaloop.common.kube.errors import Unanswered, Unauthorized, api_status, refusal
from metaloop.common.telemetry import metrics

JSON = "application/json"

_WATCH_BUFFER_BYTES = 256 * 1024
_IDLE_CONNECTION_SECONDS = 60.0
"""Less than the 90 s after which the API server closes idle connections, so that it does not close one that is about to
be used."""

_USER_AGENT = f"metaloop/{version('metaloop-common')}"
_BROKEN = (aiohttp.ClientError, OSError, TimeoutError)

_NO_ANSWER = "<error>"
"""What client-go calls the code of a request that was not answered."""

# The names and labels are those of client-go, except that a watch is a verb of its own.
_requests_total = metrics.counter(
    "rest_client_requests", "Requests to the API server, by the code of the answer; `<error>` for none.", ("code", "method", "host")
)
_request_seconds = metrics.histogram(
    "rest_client_request_duration_seconds", "Time until the API server answered, watches left out.", ("verb", "host")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request: `target` is the encoded path with its query."""

    method: str
    target: str
    body: bytes | None = None
    accept: str = JSON
    content_type: str = JSON
    permit: Permit = always
    """Called each time before the request is sent."""
    acting_as: str = ""
    """The user on whose behalf it is sent, if it is not our own. We need the right to impersonate this user."""

    def __str__(self) -> str:
        """Method and path.

        The query is left out because it differs between attempts, and equal failures must have equal messages.
        """
        return f"{self.method} {self.target.partition('?')[0]}"


class Exchanges(Protocol):
    """Carries requests to an API server: what a KubeClient stands on."""

    async def exchange(self, request: Request) -> bytes:
        """The body of a successful answer. Raises the error of kube/errors.py for any other."""
        ...

    def lines(self, request: Request, on_open: Callable[[], None]) -> AsyncGenerator[list[bytes], None]:
        """The lines of an answer, each list with those that arrived together.

        `on_open` is called once the server has accepted the request.
        """
        ...


class Transport:
    """`Exchanges` over HTTP. Connections to one API server, with one identity at a time."""

    def __init__(self, credentials: Credentials, session: aiohttp.ClientSession, *, timeout_seconds: float) -> None:
        self._credentials = credentials
        self._session = session
        self._timeout_seconds = timeout_seconds
        self._peer = _peer(credentials.identity, connect_seconds=timeout_seconds)
        self._peers_identity = credentials.identity

    @staticmethod
    @asynccontextmanager
    async def connect(credentials: Credentials, *, timeout_seconds: float) -> AsyncIterator["Transport"]:
        """A transport while the block runs; it connects on first use."""
        async with _session(connect_seconds=timeout_seconds) as session:
            transport = Transport(credentials, session, timeout_seconds=timeout_seconds)
            try:
                yield transport
            finally:
                transport.close()

    def close(self) -> None:
        """Close the connections, except those of watches."""
        self._peer.close()

    async def exchange(self, request: Request) -> bytes:
        """The body of a successful answer. After a 401 the request is sent once more with fresh credentials."""
        identity = await self._identity()
        try:
            return await self._exchange(request, identity)
        except Unauthorized:
            await self._credentials.replace_rejected(identity)
            return await self._exchange(request, self._credentials.identity)

    async def lines(self, request: Request, on_open: Callable[[], None]) -> AsyncGenerator[list[bytes], None]:
        """The lines of an answer, each list with those that arrived together, until the API server ends it.

        Raises Unanswered if the connection breaks.
        """
        identity = await self._identity()
        try:
            async with _sent(self._session, request, identity) as answer:
                _requests_of("WATCH", answer.status, identity.server_url).inc()
                if answer.status != 200:
                    raise failure_of(request, await _read(answer))
                on_open()
                try:
                    async for lines in _split(answer.content, request):
                        yield lines
                finally:
                    _cut(answer)
        except Unauthorized:
            await self._credentials.replace_rejected(identity)
            raise
        except _BROKEN as problem:
            raise Unanswered(f"{request}: {_text(problem)}") from problem

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
            _requests_of(request.method, _NO_ANSWER, identity.server_url).inc()
            late = f"no answer within {self._timeout_seconds:g} s" if isinstance(problem, TimeoutError) else ""
            raise Unanswered(f"{request}: {late or _text(problem)}") from problem
        _seconds_of(request.method, identity.server_url).observe(perf_counter() - began)
        _requests_of(request.method, answer.status, identity.server_url).inc()
        if answer.status >= 300:
            raise failure_of(request, answer)
        return answer.body

    async def _answer_to(self, request: Request, identity: Identity) -> Answer:
        if identity.proxy_url:
            request.permit()
            async with _sent(self._session, request, identity) as response:
                return await _read(response)
        headers = _lines(identity.authorization, request.accept, _content_type(request), request.acting_as)
        return await self._peer_for(identity).ask(request.method, request.target, headers, request.body, permit=request.permit)

    def _peer_for(self, identity: Identity) -> Peer:
        """The API server, through connections of this identity.

        When the certificate changed, the former connections are closed.
        """
        if identity is not self._peers_identity:
            if _connection_key(identity) != _connection_key(self._peers_identity):
                self._peer.close()
                self._peer = _peer(identity, connect_seconds=self._timeout_seconds)
            self._peers_identity = identity
        return self._peer


@lru_cache
def _requests_of(method: str, code: int | str, server_url: str) -> Counter:
    return _requests_total.labels(code=str(code), method=method, host=_host_in(server_url))


@lru_cache
def _seconds_of(method: str, server_url: str) -> Histogram:
    return _request_seconds.labels(verb=method, host=_host_in(server_url))


def _host_in(server_url: str) -> str:
    """Host and port, without the user that a kubeconfig's URL may name."""
    return urlsplit(server_url).netloc.rpartition("@")[2]


def _connection_key(identity: Identity) -> tuple[object, ...]:
    """The parts of an identity that a connection depends on. The rest is sent with each request."""
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
        # A watch lasts for minutes: only connecting has a timeout.
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds),
        read_bufsize=_WATCH_BUFFER_BYTES,
    )


def _sent(session: aiohttp.ClientSession, request: Request, identity: Identity) -> "aiohttp.client._RequestContextManager":
    return session.request(
        request.method,
        URL(identity.server_url + request.target, encoded=True),
        data=request.body,
        headers=_headers(identity.authorization, request.accept, _content_type(request), request.acting_as),
        ssl=identity.tls or True,  # part of the pool's key, so that connections of a former identity are not reused
        server_hostname=identity.server_hostname,
        proxy=identity.proxy_url,
        allow_redirects=False,
    )


async def _read(response: aiohttp.ClientResponse) -> Answer:
    return Answer(response.status, response.raw_headers, await response.read())


def _cut(answer: aiohttp.ClientResponse) -> None:
    """Close a watch in the middle. An orderly TLS close would wait for a close_notify that never comes."""
    if answer.connection and (socket := answer.connection.transport):
        socket.abort()


@lru_cache(maxsize=1024)
def _headers(authorization: str, accept: str, content_type: str, acting_as: str) -> CIMultiDict[str]:
    headers = CIMultiDict({"Accept": accept, "User-Agent": _USER_AGENT})
    if content_type:
        headers["Content-Type"] = content_type
    if authorization:
        headers["Authorization"] = authorization
    if acting_as:
        headers["Impersonate-User"] = acting_as
    return headers


@lru_cache(maxsize=1024)
def _lines(authorization: str, accept: str, content_type: str, acting_as: str) -> bytes:
    return header_lines(_headers(authorization, accept, content_type, acting_as))


def _content_type(request: Request) -> str:
    return request.content_type if request.body is not None else ""


def failure_of(request: Request, answer: Answer) -> MetaloopError:
    """The error of kube/errors.py for an answer that is no success."""
    status = api_status(answer.status, answer.body)
    return refusal(status, request=str(request), retry_after_seconds=_seconds(answer.header("Retry-After")))


def _seconds(retry_after: str) -> float | None:
    """The seconds in a Retry-After header.

    The API server sends whole seconds; a date, which a proxy may send, is ignored.
    """
    return float(retry_after) if retry_after.isdecimal() else None


def _text(problem: BaseException) -> str:
    return str(problem) or type(problem).__name__


async def _split(content: aiohttp.StreamReader, request: Request) -> AsyncGenerator[list[bytes], None]:
    """Lines of any length. The chunks of a line are joined once, when its end arrives."""
    unfinished: list[bytes] = []
    async for chunk in content.iter_any():
        head, *rest = chunk.split(b"\n")
        unfinished.append(head)
        if not rest:
            continue
        *lines, tail = rest
        yield [b"".join(unfinished), *lines]
        unfinished = [tail]
    if any(unfinished):
        raise Unanswered(f"{request}: ended within a line")
