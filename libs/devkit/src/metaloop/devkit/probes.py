"""Asks a program whether it is ready: one short question, answered yes or no, never with an exception."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

Probe: TypeAlias = Callable[[], Awaitable[bool]]
_Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_TIMEOUT_SECONDS = 1.0


def http_ok(url: str, *, ca: Path | None = None) -> Probe:
    """A probe that is satisfied by status 200 from `url`; over TLS it trusts the given CA and nothing else.

    By hand, since it is asked many times while programs start: a client library would take the CPU that they need.
    """
    parts = urlsplit(url)
    tls = ssl.create_default_context(cafile=ca) if ca else None
    question = f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode()

    async def is_ok(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        writer.write(question)
        return (await reader.readuntil(b"\r\n")).split()[1] == b"200"

    return _asked(lambda: asyncio.open_connection(parts.hostname, parts.port, ssl=tls), is_ok)


def tcp_greets(host: str, port: int, *, greeting: bytes) -> Probe:
    """A probe that is satisfied when the server at a port sends `greeting` first, as NATS does with INFO."""

    async def greets(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> bool:
        return await reader.readexactly(len(greeting)) == greeting

    return _asked(lambda: asyncio.open_connection(host, port), greets)


def tcp_accepts(host: str, port: int) -> Probe:
    """A probe that is satisfied when a server accepts connections at a port."""
    return _asked(lambda: asyncio.open_connection(host, port), _nothing)


def unix_accepts(path: Path) -> Probe:
    """A probe that is satisfied when a server accepts connections on a unix socket."""
    return _asked(lambda: asyncio.open_unix_connection(path), _nothing)


async def _nothing(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> bool:
    return True


def _asked(
    connect: Callable[[], Awaitable[_Streams]], ask: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]
) -> Probe:
    """A probe that connects, asks, and hangs up; whatever goes wrong on the way is a no."""

    async def probe() -> bool:
        with suppress(OSError, EOFError, asyncio.LimitOverrunError, TimeoutError):
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                reader, writer = await connect()
                try:
                    return await ask(reader, writer)
                finally:
                    writer.transport.abort()
        return False

    return probe
