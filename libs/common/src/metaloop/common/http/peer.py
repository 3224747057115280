"""One server that is asked often, and the connections to it, which are kept from one request to the next."""

import asyncio
import re
import socket
import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from aiohappyeyeballs import start_connection

from metaloop.common.http.answer import Answer
from metaloop.common.http.connection import Connection, Unheard
from metaloop.common.keepalive import KeepAlive, enable_keep_alive

IDEMPOTENT: Final = frozenset({"GET", "OPTIONS", "PUT", "DELETE"})
"""What may be sent once more where a kept connection turns out to be closed (RFC 9110, 9.2.2)."""

_KEEP_ALIVE: Final = KeepAlive(idle_seconds=15, interval_seconds=5, probes=3, unacknowledged_seconds=5)
"""A machine that vanished is noticed within half a minute, though a call says nothing while a webhook thinks; by who sends it a request, in seconds."""

_NEXT_ADDRESS_SECONDS: Final = 0.25
"""How long the first of a name's addresses is waited for before the next is tried beside it (RFC 8305)."""

_PORTS: Final = {"http": 80, "https": 443}
_TARGET: Final = re.compile(r"/[\x21-\x7e]*")
_HEADER: Final = re.compile(r"[\x20-\x7e\t\x80-\U0010ffff]*")


class NoConnection(ConnectionError):
    """The server can't be reached, or one of us doesn't trust the other."""


def header_lines(headers: Mapping[str, str]) -> bytes:
    """These headers as they are sent. Raises ValueError for a value that would be more than one."""
    for name, value in headers.items():
        if not _HEADER.fullmatch(value):
            raise ValueError(f"the header {name} can't have this value")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()


class Peer:
    """A server, by the beginning of its URLs. It is asked as often at once as its callers like, each time over a connection of its own."""

    def __init__(
        self,
        url: str,
        *,
        tls: ssl.SSLContext | None = None,
        server_hostname: str | None = None,
        idle_seconds: float = 30.0,
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
        self._connect_seconds = connect_seconds
        self._kept: list[Connection] = []
        """The one that was used last is the last."""
        self._is_closed = False

    async def ask(self, method: str, target: str, headers: bytes, body: bytes | None = None) -> Answer:
        """The answer to one request; `target` is an encoded path with its query, and `headers` is made by `header_lines`.

        The time that it takes is the caller's to bound. HEAD is none of the methods: its answers tell the length of what doesn't come. Raises NoConnection and NoAnswer.
        """
        if not _TARGET.fullmatch(target):
            raise ValueError(f"{target!r} is no path of a request")
        length = b"" if body is None else b"Content-Length: %d\r\n" % len(body)
        head = b"%s %s HTTP/1.1\r\n%s%s%s\r\n" % (method.encode(), (self._prefix + target).encode(), self._host_line, headers, length)
        try:
            return await self._exchange(self._idle() or await self._connected(), head, body or b"")
        except Unheard:
            if method not in IDEMPOTENT:
                raise
        return await self._exchange(await self._connected(), head, body or b"")

    def close(self) -> None:
        """Close the connections: those that are idle now, the others with their answers."""
        self._is_closed = True
        while self._kept:
            self._kept.pop().cut()

    async def _exchange(self, connection: Connection, head: bytes, body: bytes) -> Answer:
        answer = await connection.exchange(head, body)
        if self._is_closed:
            connection.cut()
        elif connection.is_usable:
            self._kept.append(connection)
        return answer

    def _idle(self) -> Connection | None:
        """The connection that was used last, if it can be used still: the others are older, and closed by whom they lead to, or here in time."""
        oldest = asyncio.get_running_loop().time() - self._idle_seconds
        while self._kept:
            connection = self._kept.pop()
            if connection.is_usable and connection.idle_since > oldest:
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
