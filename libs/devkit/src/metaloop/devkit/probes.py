"""Readiness probes: each is one short request, answered with True or False, never with an exception."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

Probe: TypeAlias = Callable[[], Awaitable[bool]]
_Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_TIMEOUT_SECONDS = 1.0


def http_ok(url: str, *, ca: Path | None = None) -> Probe:
    """A probe that succeeds if `url` answers with status 200; over TLS it trusts the given CA alone.

    It speaks HTTP by hand because it runs many times while programs start: a client library would take the CPU that
    they need.
    """
    parts = urlsplit(url)
    tls = ssl.create_default_context(cafile=ca) if ca else None
    request = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode()

    async def is_ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(request)
        return (await reader.readuntil(b"\r\n")).split()[1] == b"200"

    return _asked(lambda: asyncio.open_connection(parts.hostname, parts.port, ssl=tls), is_ok)


def tcp_greets(host: str, port: int, *, greeting: bytes) -> Probe:
    """A probe that succeeds if the server sends `greeting` first, as NATS does with INFO."""

    async def greets(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> bool:
        return await reader.readexactly(len(greeting)) == greeting

    return _asked(lambda: asyncio.open_connection(host, port), greets)


def tcp_accepts(host: str, port: int) -> Probe:
    """A probe that succeeds if a server accepts connections at a port."""
    return _asked(lambda: asyncio.open_connection(host, port), _nothing)


def unix_accepts(path: Path) -> Probe:
    """A probe that succeeds if a server accepts connections on a unix socket."""
    return _asked(lambda: asyncio.open_unix_connection(path), _nothing)


async def _nothing(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> bool:
    return True


def _asked(
    connect: Callable[[], Awaitable[_Streams]], ask: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]
) -> Probe:
    """A probe that connects, asks and disconnects; it fails if any of that fails."""

    async def answer() -> bool:
        reader, writer = await connect()
        try:
            return await ask(reader, writer)
        finally:
            writer.transport.abort()

    async def probe() -> bool:
        try:
            return await asyncio.wait_for(answer(), _TIMEOUT_SECONDS)
        except (OSError, EOFError, asyncio.LimitOverrunError, TimeoutError):
            return False

    return probe
