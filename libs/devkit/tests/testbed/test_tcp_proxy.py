"""The proxy in front of a TCP server: what passes it without faults, and with each kind of fault."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest_asyncio

from metaloop.devkit.testbed.tcpproxy import TcpProxy

DELAY_SECONDS = 0.2


class Client:
    """One connection to an echo server, through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, line: bytes) -> None:
        """Send a line."""
        self._writer.write(line + b"\n")

    async def receive(self) -> bytes:
        """The next line; empty after the end of the connection."""
        with suppress(ConnectionError):
            return (await self._reader.readline()).rstrip()
        return b""

    async def receives_nothing_for(self, seconds: float) -> bool:
        """Whether nothing is received for this time."""
        try:
            async with asyncio.timeout(seconds):
                await self._reader.readline()
        except TimeoutError:
            return True
        return False


@asynccontextmanager
async def echo_server() -> AsyncIterator[str]:
    """The URL of a server that sends every line back. At the end its connections are closed."""
    connections: set[asyncio.Task[None]] = set()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(line)
                await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.ensure_future(echo(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        if connections:
            await asyncio.wait(connections)


@pytest_asyncio.fixture
async def proxy() -> AsyncIterator[TcpProxy]:
    async with echo_server() as url, TcpProxy.before(url) as proxy:
        yield proxy


@asynccontextmanager
async def calling(proxy: TcpProxy) -> AsyncIterator[Client]:
    """A connection, for as long as the block lasts."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


async def test_all_data_pass_in_order_without_a_fault(proxy: TcpProxy) -> None:
    async with calling(proxy) as client:
        client.send(b"one")
        client.send(b"two")

        assert [await client.receive(), await client.receive()] == [b"one", b"two"]


async def test_url_through_the_proxy_differs_in_host_and_port_alone(proxy: TcpProxy) -> None:
    assert proxy.instead_of("nats://user:secret@broker:4222/x") == f"nats://user:secret@127.0.0.1:{proxy.port}/x"


async def test_data_are_held_back_during_a_partition(proxy: TcpProxy) -> None:
    async with calling(proxy) as client:
        client.send(b"before")
        await client.receive()
        proxy.partition()

        client.send(b"held back")
        was_stalled = await client.receives_nothing_for(DELAY_SECONDS)
        proxy.heal()

        assert was_stalled
        assert await client.receive() == b"held back"


async def test_connection_opened_during_a_partition_works_after_it(proxy: TcpProxy) -> None:
    proxy.partition()
    async with calling(proxy) as client:
        client.send(b"early")
        was_stalled = await client.receives_nothing_for(DELAY_SECONDS)
        proxy.heal()

        assert was_stalled
        assert await client.receive() == b"early"


async def test_delay_applies_to_both_directions_and_keeps_the_order(proxy: TcpProxy) -> None:
    proxy.delay_seconds = DELAY_SECONDS
    loop = asyncio.get_running_loop()
    async with calling(proxy) as client:
        began = loop.time()
        client.send(b"one")
        client.send(b"two")

        received = [await client.receive(), await client.receive()]

    assert received == [b"one", b"two"]
    assert loop.time() - began >= 2 * DELAY_SECONDS


async def test_cut_breaks_all_connections_and_new_ones_work(proxy: TcpProxy) -> None:
    async with calling(proxy) as first, calling(proxy) as second:
        for client in (first, second):
            client.send(b"hello")
            await client.receive()

        proxy.cut()

        assert [await first.receive(), await second.receive()] == [b"", b""]
    async with calling(proxy) as later:
        later.send(b"again")
        assert await later.receive() == b"again"


async def test_connection_ends_when_the_server_closes_it() -> None:
    async with echo_server() as url, TcpProxy.before(url) as proxy, calling(proxy) as client:
        client._writer.write_eof()

        assert await client.receive() == b""
