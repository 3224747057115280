"""A proxy in front of a TCP server that injects network faults: partitions, delays, broken connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from metaloop.devkit.ports import LOOPBACK

_CHUNK_BYTES = 2**16


class TcpProxy:
    """The proxy; each attribute and method controls one kind of fault."""

    def __init__(self, host: str, port: int) -> None:
        self.delay_seconds = 0.0
        """How long all data are delayed, in both directions."""
        self.port = 0
        self._upstream = (host, port)
        self._is_healed = asyncio.Event()
        self._is_healed.set()
        self._connections: set[asyncio.Future[None]] = set()

    @staticmethod
    @asynccontextmanager
    async def before(url: str) -> AsyncIterator["TcpProxy"]:
        """A proxy in front of the server of a URL, for as long as the block lasts."""
        parts = urlsplit(url)
        proxy = TcpProxy(parts.hostname or LOOPBACK, parts.port or 0)
        server = await asyncio.start_server(proxy._accept, LOOPBACK, 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            server.close()
            await proxy._end()

    def instead_of(self, url: str) -> str:
        """The URL of the same server through the proxy."""
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}{LOOPBACK}:{self.port}").geturl()

    def partition(self) -> None:
        """Stop all traffic in both directions; connections stay open, and new ones are accepted."""
        self._is_healed.clear()

    def heal(self) -> None:
        """Resume all traffic, starting with the held-back data."""
        self._is_healed.set()

    def cut(self) -> None:
        """Break all connections."""
        for connection in self._connections:
            connection.cancel()

    async def _end(self) -> None:
        """Break all connections, and return when they are closed."""
        self.cut()
        if self._connections:
            await asyncio.wait(self._connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.ensure_future(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._relay(reader, writer)
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            await _closed(writer)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._is_healed.wait()
        there_reader, there_writer = await asyncio.open_connection(*self._upstream)
        try:
            there, back = (asyncio.ensure_future(self._pass(*ends)) for ends in ((reader, there_writer), (there_reader, writer)))
            try:
                await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
            finally:
                there.cancel()
                back.cancel()
                await asyncio.wait([there, back])
        except asyncio.CancelledError:
            there_writer.transport.abort()
            raise
        finally:
            await _closed(there_writer)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send data on in order, each piece after its delay."""
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=1024)

        async def read() -> None:
            while data := await reader.read(_CHUNK_BYTES):
                await pieces.put((loop.time() + self.delay_seconds, data))
            await pieces.put((loop.time() + self.delay_seconds, b""))

        reading = asyncio.ensure_future(read())
        try:
            while data := await self._next(pieces):
                writer.write(data)
                await writer.drain()
        finally:
            reading.cancel()
            await asyncio.wait([reading])

    async def _next(self, pieces: asyncio.Queue[tuple[float, bytes]]) -> bytes:
        """The next piece, after its delay; empty at the end."""
        due, data = await pieces.get()
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        await self._is_healed.wait()
        return data


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Returns when the connection is closed, however it ended."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
