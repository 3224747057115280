"""One server that gets many requests, and the connections to it, which are kept open between requests."""

import asyncio
import re
import socket
import ssl
from collections.abc import Mapping
from math import inf
from typing import Final, Protocol
from urllib.parse import urlsplit

from aiohappyeyeballs import start_connection

from metaloop.common.http.answer import Answer
from metaloop.common.http.body import Body, OpenBody, chunk, chunks_of, open_chunks_of
from metaloop.common.http.connection import ClosedWhileIdle, Connection, Permit, always
from metaloop.common.keepalive import KeepAlive, enable_keep_alive

IDEMPOTENT: Final = frozenset({"GET", "OPTIONS", "PUT", "DELETE"})
"""Methods that may be sent again when a kept connection turns out to be closed (RFC 9110, 9.2.2)."""

_KEEP_ALIVE: Final = KeepAlive(idle_seconds=15, interval_seconds=5, probes=3, unacknowledged_seconds=5)
"""Detects within half a minute that the server's machine is gone while a call waits for its webhook, and within seconds
when a request is sent."""

_NEXT_ADDRESS_SECONDS: Final = 0.25
"""How long to wait for the first address of a name before the next is tried in parallel (RFC 8305)."""

_PORTS: Final = {"http": 80, "https": 443}
_TARGET: Final = re.compile(r"/[\x21-\x7e]*")
_HEADER: Final = re.compile(r"[\x20-\x7e\t\x80-\U0010ffff]*")


class NoConnection(ConnectionError):
    """The server can't be reached, or the TLS handshake failed."""


def header_lines(headers: Mapping[str, str]) -> bytes:
    """The headers as they are sent. Raises ValueError for a value that would end its header."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(value):
            raise ValueError(f"the header {name} can't have this value")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


def _framing(body: Body | OpenBody | None) -> bytes:
    """The header that says how long a body is, or how its end is found."""
    if body is None:
        return b""
    return b"Content-Length: %d\r\n" % len(body) if isinstance(body, bytes) else b"Transfer-Encoding: chunked\r\n"


class Asked(Protocol):
    """A server that answers requests, wherever it is."""

    async def ask(
        self, method: str, target: str, headers: bytes, body: Body | OpenBody | None = None, *, permit: Permit = always
    ) -> Answer:
        """The answer to one request. `headers` comes from `header_lines`. Raises OSError where there is none.

        A body that isn't `bytes` is iterated over once for each time that it is sent.
        `permit` is called immediately before the request is sent; what it raises is raised.
        """
        ...


class Peer:
    """`Asked` over HTTP. A client for the server at one URL prefix.

    Requests may run concurrently, each on its own connection; their number is the caller's to limit.
    """

    def __init__(  # noqa: PLR0913 - a URL, and how connections to it are made and kept
        self,
        url: str,
        *,
        tls: ssl.SSLContext | None = None,
        server_hostname: str | None = None,
        idle_seconds: float = 30.0,
        longest_seconds: float = inf,
        connect_seconds: float = 5.0,
    ) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        self._prefix = parts.path.rstrip("/")
        self._authority = parts.netloc.rpartition("@")[2]
        self._host_line = header_lines({"Host": self._authority})
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        self._server_hostname = server_hostname or self._host
        self._idle_seconds = idle_seconds
        self._longest_seconds = longest_seconds
        """After so long a connection gets no further request: so servers that came later get their share."""
        self._connect_seconds = connect_seconds
        self._kept: list[Connection] = []
        """The most recently used connection is the last."""
        self._is_closed = False

    async def ask(
        self, method: str, target: str, headers: bytes, body: Body | OpenBody | None = None, *, permit: Permit = always
    ) -> Answer:
        """The answer to one request. `target` is an encoded path with its query; `headers` comes from `header_lines`.

        The caller sets the timeout. HEAD is not supported: its answers announce a body that does not follow. Raises
        NoConnection and NoAnswer.
        """
        if not _TARGET.fullmatch(target):
            raise ValueError(f"{target!r} is not a request path")
        framing = _framing(body)
        head = b"%s %s HTTP/1.1\r\n%s%s%s\r\n" % (method.encode(), (self._prefix + target).encode(), self._host_line, headers, framing)
        try:
            return await self._exchange(self._idle() or await self._connected(), head, b"" if body is None else body, permit=permit)
        except ClosedWhileIdle:
            if method not in IDEMPOTENT:
                raise
        return await self._exchange(await self._connected(), head, b"" if body is None else body, permit=permit)

    def close(self) -> None:
        """Close idle connections now, and the others after their answers."""
        self._is_closed = True
        while self._kept:
            self._kept.pop().cut()

    @property
    def kept(self) -> int:
        """How many connections wait for the next request."""
        return len(self._kept)

    async def _exchange(self, connection: Connection, head: bytes, body: Body | OpenBody, *, permit: Permit) -> Answer:
        if isinstance(body, OpenBody):
            parts, rest = ((chunk(body.beginning),), ()) if isinstance(body.beginning, bytes) else ((), open_chunks_of(body.beginning))
            answer = await connection.exchange(head, *parts, rest=rest, follow=body.follow, permit=permit)
        elif isinstance(body, bytes):
            answer = await connection.exchange(head, body, permit=permit)
        else:
            answer = await connection.exchange(head, rest=chunks_of(body), permit=permit)
        if self._is_closed:
            connection.cut()
        elif connection.is_usable:
            self._kept.append(connection)
        return answer

    def _idle(self) -> Connection | None:
        """The most recently used connection, if it is still usable.

        The others are older: the server closes them, or they are dropped here.
        """
        while self._kept:
            connection = self._kept.pop()
            if connection.is_usable and connection.idle_seconds < self._idle_seconds and connection.age_seconds < self._longest_seconds:
                return connection
            connection.cut()
        return None

    async def _connected(self) -> Connection:
        loop = asyncio.get_running_loop()
        server_hostname = self._server_hostname if self._tls else None
        try:
            async with asyncio.timeout(self._connect_seconds):
                addresses = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
                opened = await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS)
                transport, connection = await loop.create_connection(
                    Connection, sock=opened, ssl=self._tls, server_hostname=server_hostname
                )
        except TimeoutError as late:
            raise NoConnection(f"no connection to {self._authority} within {self._connect_seconds:g} s") from late
        except OSError as problem:
            raise NoConnection(f"no connection to {self._authority}: {problem}") from problem
        enable_keep_alive(transport.get_extra_info("socket"), _KEEP_ALIVE)
        return connection
