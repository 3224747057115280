"""Readiness probes of real servers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from metaloop.devkit.ports import LOOPBACK, free_port
from metaloop.devkit.probes import http_ok, tcp_accepts, tcp_greets, unix_accepts

Behaviour: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def saying(text: bytes) -> Behaviour:
    """A server that waits for a request that ends with an empty line, and answers."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(text)

    return answer


def greeting(text: bytes) -> Behaviour:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(text)

    return greet


async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        await reader.read()


@asynccontextmanager
async def server(behaviour: Behaviour) -> AsyncIterator[int]:
    """A server that disconnects when its behaviour returns; all its connections are closed after the block."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await behaviour(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async with asyncio.TaskGroup() as connections:
        listening = await asyncio.start_server(lambda *streams: connections.create_task(serve(*streams)), LOOPBACK, 0)
        async with listening:
            yield listening.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("answer", "ready"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nok", True),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", False),
        (b"HTTP/1.1 404 Not Found\r\n\r\n200", False),
        (b"HTTP/1.1 200 OK", False),
        (b"", False),
    ],
    ids=["200", "503", "404", "cut off", "disconnected"],
)
async def test_only_status_200_is_ready(answer: bytes, *, ready: bool) -> None:
    async with server(saying(answer)) as port:
        assert await http_ok(f"http://{LOOPBACK}:{port}/readyz")() is ready


@pytest.mark.parametrize(("said", "ready"), [(b"INFO {}", True), (b"HELLO {}", False), (b"INF", False)])
async def test_only_the_right_greeting_is_ready(said: bytes, *, ready: bool) -> None:
    async with server(greeting(said)) as port:
        assert await tcp_greets(LOOPBACK, port, greeting=b"INFO ")() is ready


async def test_a_server_that_does_not_answer_is_not_ready() -> None:
    async with server(silent) as port:
        assert not await http_ok(f"http://{LOOPBACK}:{port}/readyz")()


async def test_without_a_listener_no_probe_is_ready(tmp_path: Path) -> None:
    port = free_port()
    probes = [
        http_ok(f"http://{LOOPBACK}:{port}/readyz"),
        tcp_greets(LOOPBACK, port, greeting=b"INFO "),
        tcp_accepts(LOOPBACK, port),
        unix_accepts(tmp_path / "socket"),
    ]

    assert [await probe() for probe in probes] == [False] * 4


async def test_a_server_that_accepts_connections_is_ready() -> None:
    async with server(silent) as port:
        assert await tcp_accepts(LOOPBACK, port)()
