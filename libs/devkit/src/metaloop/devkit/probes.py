"""Asks a program whether it is ready: one short question, answered yes or no, never with an exception."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import httpx

Probe: TypeAlias = Callable[[], Awaitable[bool]]

_TIMEOUT_SECONDS = 1.0


def http_ok(url: str, *, ca: Path | None = None) -> Probe:
    """A probe that is satisfied by status 200 from `url`; over TLS it trusts the given CA and nothing else."""
    context = ssl.create_default_context(cafile=ca) if ca else False

    async def probe() -> bool:
        try:
            async with httpx.AsyncClient(verify=context, timeout=_TIMEOUT_SECONDS, trust_env=False) as client:
                return (await client.get(url)).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    return probe


def tcp_greets(host: str, port: int, *, greeting: bytes) -> Probe:
    """A probe that is satisfied when the server at a port sends `greeting` first, as NATS does with INFO."""

    async def probe() -> bool:
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                reader, writer = await asyncio.open_connection(host, port)
                try:
                    return await reader.readexactly(len(greeting)) == greeting
                finally:
                    writer.close()
        return False

    return probe


def tcp_accepts(host: str, port: int) -> Probe:
    """A probe that is satisfied when a server accepts connections at a port."""
    return _accepts(lambda: asyncio.open_connection(host, port))


def unix_accepts(path: Path) -> Probe:
    """A probe that is satisfied when a server accepts connections on a unix socket."""
    return _accepts(lambda: asyncio.open_unix_connection(path))


def _accepts(connect: Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]) -> Probe:
    async def probe() -> bool:
        try:
            _, writer = await connect()
        except OSError:
            return False
        writer.close()
        return True

    return probe
