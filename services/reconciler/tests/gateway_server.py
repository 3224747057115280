"""A hook gateway that answers as a test says: a real HTTP server on loopback, with the real protocol."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from metaloop.common.hooks import call
from metaloop.common.json import dumps


@dataclass
class GatewayServer:
    """Answers every call in the same way, and keeps the requests."""

    verdict: call.Verdict = field(default_factory=lambda: call.Accepted(body=b"{}"))
    status: int = 200
    breaks_off: bool = False
    echoes: bool = False
    """Whether the answer's status names the revision of the request."""
    hangs: bool = False
    """Whether no call is ever answered."""
    meeting: asyncio.Barrier | None = None
    """Calls wait here for one another before any is answered."""
    url: str = ""
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    is_held: bool = False
    """Whether calls are answered only once their lease was renewed."""
    leases: list[float] = field(default_factory=list[float])
    """How long callers said that their leases last, at the beginning and at each renewal."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Keep the request and answer it."""
        self.headers.append(dict(request.headers))
        self.bodies.append(await self._body(request))
        if self.breaks_off:
            assert request.transport is not None
            request.transport.abort()
        if self.hangs:
            await asyncio.Event().wait()
        if self.status != 200:
            return web.Response(status=self.status, text="go away")
        if self.meeting is not None:
            await self.meeting.wait()
        if self.echoes:
            self.verdict = call.Accepted(body=dumps({"status": {"revision": request.headers[call.REVISION_HEADER]}}))
        if self.is_held:
            self.leases.append(call.renewed_from_wire(await _line(request)))
        name, body = call.verdict_to_wire(self.verdict)
        return web.Response(headers={call.VERDICT_HEADER: name}, body=body)

    async def _body(self, request: web.Request) -> bytes:
        if request.path == call.PATH:
            return await request.read()
        body = b""
        while length := call.length_from_wire(await _line(request)):
            body += await request.content.readexactly(length)
        self.leases.append(call.renewed_from_wire(await _line(request)))
        return body


async def _line(request: web.Request) -> bytes:
    return (await request.content.readuntil(b"\n"))[:-1]


@asynccontextmanager
async def serving(gateway: GatewayServer, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[GatewayServer]:
    """Serves the gateway while the block lasts."""
    app = web.Application()
    app.router.add_post(call.PATH, gateway.answer)
    app.router.add_post(call.LEASED_PATH, gateway.answer)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        gateway.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
        yield gateway
    finally:
        await runner.cleanup()
