"""The proxy before a TCP server: what passes on good days, and what does not on each kind of bad day."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest_asyncio

from metaloop.devkit.testbed.tcpproxy import TcpProxy

LATE_SECONDS = 0.2


class Caller:
    """One connection to an echo server, through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def says(self, word: bytes) -> None:
        """Send a line."""
        self._writer.write(word + b"\n")

    async def hears(self) -> bytes:
        """The next line, or nothing once the connection ended."""
        with suppress(ConnectionError):
            return (await self._reader.readline()).rstrip()
        return b""

    async def hears_nothing_for(self, seconds: float) -> bool:
        """Whether nothing comes for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._reader.readline()
        except TimeoutError:
            return True
        return False


@asynccontextmanager
async def echo_server() -> AsyncIterator[str]:
    """The URL of a server that says everything once more."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                writer.write(line)
                await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    try:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@pytest_asyncio.fixture
async def proxy() -> AsyncIterator[TcpProxy]:
    async with echo_server() as url, TcpProxy.before(url) as proxy:
        yield proxy


@asynccontextmanager
async def calling(proxy: TcpProxy) -> AsyncIterator[Caller]:
    """A connection, for as long as the block lasts."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        yield Caller(reader, writer)
    finally:
        writer.close()


async def test_everything_passes_on_a_good_day(proxy: TcpProxy) -> None:
    async with calling(proxy) as caller:
        caller.says(b"one")
        caller.says(b"two")

        assert [await caller.hears(), await caller.hears()] == [b"one", b"two"]


async def test_server_is_reached_by_the_same_url_with_the_proxys_port(proxy: TcpProxy) -> None:
    assert proxy.instead_of("nats://user:secret@broker:4222/x") == f"nats://user:secret@127.0.0.1:{proxy.port}/x"


async def test_partition_holds_back_both_ways_until_it_heals(proxy: TcpProxy) -> None:
    async with calling(proxy) as caller:
        caller.says(b"before")
        await caller.hears()
        proxy.partition()

        caller.says(b"held back")
        was_silent = await caller.hears_nothing_for(LATE_SECONDS)
        proxy.heal()

        assert was_silent
        assert await caller.hears() == b"held back"


async def test_connection_that_is_opened_in_a_partition_works_after_it(proxy: TcpProxy) -> None:
    proxy.partition()
    async with calling(proxy) as caller:
        caller.says(b"early")
        was_silent = await caller.hears_nothing_for(LATE_SECONDS)
        proxy.heal()

        assert was_silent
        assert await caller.hears() == b"early"


async def test_delay_makes_each_piece_late_in_either_direction_and_keeps_their_order(proxy: TcpProxy) -> None:
    proxy.delay_seconds = LATE_SECONDS
    loop = asyncio.get_running_loop()
    async with calling(proxy) as caller:
        began = loop.time()
        caller.says(b"one")
        caller.says(b"two")

        heard = [await caller.hears(), await caller.hears()]

    assert heard == [b"one", b"two"]
    assert loop.time() - began >= 2 * LATE_SECONDS


async def test_cut_ends_every_connection_and_lets_new_ones_be_made(proxy: TcpProxy) -> None:
    async with calling(proxy) as first, calling(proxy) as second:
        for caller in (first, second):
            caller.says(b"hello")
            await caller.hears()

        proxy.cut()

        assert [await first.hears(), await second.hears()] == [b"", b""]
    async with calling(proxy) as later:
        later.says(b"again")
        assert await later.hears() == b"again"


async def test_end_of_the_server_ends_the_connection() -> None:
    async with echo_server() as url, TcpProxy.before(url) as proxy, calling(proxy) as caller:
        caller._writer.write_eof()

        assert await caller.hears() == b""
