"""A proxy before any TCP server, here nats-server, that does what networks do on bad days: partition, delay, cut."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from metaloop.devkit.ports import LOOPBACK

_CHUNK_BYTES = 2**16


class TcpProxy:
    """The proxy; each attribute and method is one kind of bad day."""

    def __init__(self, host: str, port: int) -> None:
        self.delay_seconds = 0.0
        """How long each piece of data is on its way, in either direction."""
        self.port = 0
        self._upstream = (host, port)
        self._flows = asyncio.Event()
        self._flows.set()
        self._connections: set[asyncio.Future[None]] = set()

    @staticmethod
    @asynccontextmanager
    async def before(url: str) -> AsyncIterator["TcpProxy"]:
        """A proxy before the server of a URL, for as long as the block lasts."""
        parts = urlsplit(url)
        proxy = TcpProxy(parts.hostname or LOOPBACK, parts.port or 0)
        server = await asyncio.start_server(proxy._serve, LOOPBACK, 0)
        proxy.port = server.sockets[0].getsockname()[1]
        try:
            yield proxy
        finally:
            server.close()
            proxy.cut()

    def instead_of(self, url: str) -> str:
        """The URL by which the same server is reached through the proxy."""
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return parts._replace(netloc=f"{user}{at}{LOOPBACK}:{self.port}").geturl()

    def partition(self) -> None:
        """Let nothing pass any more, neither way, while connections stay open; new ones are taken, and get nothing either."""
        self._flows.clear()

    def heal(self) -> None:
        """Let everything pass again, what was held back first."""
        self._flows.set()

    def cut(self) -> None:
        """Break all connections."""
        for connection in self._connections:
            connection.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.ensure_future(self._relay(reader, writer))
        self._connections.add(connection)
        try:
            with suppress(OSError, asyncio.CancelledError):
                await connection
        finally:
            self._connections.discard(connection)
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flows.wait()
        there_reader, there_writer = await asyncio.open_connection(*self._upstream)
        try:
            there, back = (asyncio.ensure_future(self._pass(*ends)) for ends in ((reader, there_writer), (there_reader, writer)))
            try:
                await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
            finally:
                there.cancel()
                back.cancel()
                await asyncio.wait([there, back])
        finally:
            there_writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hand on what comes, in order and each piece as late as it should be."""
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(maxsize=1024)

        async def read() -> None:
            while data := await reader.read(_CHUNK_BYTES):
                await pieces.put((loop.time() + self.delay_seconds, data))
            await pieces.put((loop.time() + self.delay_seconds, b""))

        reading = asyncio.ensure_future(read())
        try:
            while True:
                due, data = await pieces.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                await self._flows.wait()
                if not data:
                    return
                writer.write(data)
                await writer.drain()
        finally:
            reading.cancel()
            await asyncio.wait([reading])
