"""Web servers that a test controls byte by byte: webhooks that behave well, and others."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request as received; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class ServerConnection:
    """The server's end of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *parts: bytes) -> None:
        """Send these bytes, each part on its own."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()

    async def until_closed(self) -> None:
        """Wait until the peer closes the connection."""
        await self.reader.read()

    def close(self) -> None:
        """Close the connection."""
        self.writer.close()


Script: TypeAlias = Callable[[Request, ServerConnection], Awaitable[None]]
"""How to respond to one request."""


def response(status: int = 200, body: bytes = b"{}", **headers: str) -> bytes:
    """A complete HTTP response; underscores in header names stand for dashes."""
    every = {"content-length": str(len(body))} | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} Because", *(f"{name}: {value}" for name, value in every.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answers(status: int = 200, body: bytes = b"{}", **headers: str) -> Script:
    """A script that answers every request in the same way."""
    return sends(response(status, body, **headers))


def sends(*parts: bytes, then_closes: bool = False) -> Script:
    """A script that sends these bytes for every request, whatever they are."""

    async def script(_: Request, connection: ServerConnection) -> None:
        await connection.send(*parts)
        if then_closes:
            connection.close()

    return script


async def never_answers(_: Request, connection: ServerConnection) -> None:
    """A script that waits until the peer gives up."""
    await connection.until_closed()


@dataclass(slots=True)
class WebServer:
    """A running server, and what has happened so far."""

    script: Script
    scheme: str
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    """How many have been opened in all."""

    open_connections: int = 0
    in_flight: int = 0
    """How many requests the script is working on."""

    most_in_flight: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def url(self, path: str = "/sync") -> str:
        """A URL of this server."""
        return f"{self.scheme}://localhost:{self.port}{path}"

    async def until(self, reached: Callable[["WebServer"], bool]) -> None:
        """Wait until something has happened."""
        async with asyncio.timeout(30), self.changed:
            await self.changed.wait_for(lambda: reached(self))

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end."""
        await self._note(connections=1, open_connections=1)
        try:
            while not writer.is_closing():
                await self._serve_one(ServerConnection(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the peer closed it
        finally:
            writer.close()
            await self._note(open_connections=-1)

    async def _serve_one(self, connection: ServerConnection) -> None:
        request = await _read(connection.reader)
        self.requests.append(request)
        await self._note(in_flight=1)
        try:
            await self.script(request, connection)
        finally:
            await self._note(in_flight=-1)

    async def _note(self, *, connections: int = 0, open_connections: int = 0, in_flight: int = 0) -> None:
        self.connections += connections
        self.open_connections += open_connections
        self.in_flight += in_flight
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        async with self.changed:
            self.changed.notify_all()


@asynccontextmanager
async def serving(script: Script, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[WebServer]:
    """A server with this script, until the scope ends."""
    web_server = WebServer(script, "http" if tls is None else "https")
    server = await asyncio.start_server(web_server.connected, host, port, ssl=tls, backlog=1024)
    web_server.port = server.sockets[0].getsockname()[1]
    async with server:
        yield web_server


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Request(method=method, path=path, headers=headers, body=await reader.readexactly(int(headers.get("content-length", 0))))
