"""A proxy in front of a real API server that injects faults: delays, broken watches, stalls, refused requests."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import aiohttp
from aiohttp import web

from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.ports import LOOPBACK

_LINE_BYTES = 64 * 1024 * 1024
_HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
_EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "code": 410, "reason": "Expired", "message": "too old"}}


class WatchFault(Enum):
    """A fault of the open watches."""

    END = "end"
    """They end regularly, as the server ends them every few minutes."""
    CUT = "cut"
    """Their connections break."""
    CUT_WITHIN_A_LINE = "cut within a line"
    """Their connections break in the middle of the next event."""
    EXPIRE = "expire"
    """They answer that the resourceVersion is too old."""
    GARBLE = "garble"
    """The next event of each is unreadable, and is lost."""


@dataclass(frozen=True, slots=True)
class ProxiedRequest:
    """One request that the proxy received."""

    method: str
    path: str
    query: Mapping[str, str]

    @property
    def is_watch(self) -> bool:
        """Whether it is a watch."""
        return "watch" in self.query

    @property
    def is_list(self) -> bool:
        """Whether it is a list: paged, or streamed."""
        return self.method == "GET" and ("sendInitialEvents" in self.query or "limit" in self.query)


@dataclass(slots=True, eq=False)
class _Watch:
    """One open watch, with the fault that is to be injected."""

    path: str
    lines: asyncio.Queue[tuple[float, bytes | None]] = field(default_factory=asyncio.Queue[tuple[float, bytes | None]])
    """Lines from the server, each with the time to send it on; None at the end."""
    fault: WatchFault | None = None


class ApiProxy:
    """The proxy; each attribute and method controls one kind of fault."""

    def __init__(self, upstream: aiohttp.ClientSession) -> None:
        self.asked: list[ProxiedRequest] = []
        self.watch_delay_seconds = 0.0
        """How long each event is delayed."""
        self.most_at_once = 0
        """How many requests are served concurrently, each delayed by `busy_seconds`; others are answered with 429.

        0: no limit.
        """
        self.busy_seconds = 0.0
        self.turned_away = 0
        """How many requests were answered with 429."""
        self._at_once = 0
        self.refusals: dict[str, int] = {}
        """The HTTP status of the answer to every request whose path contains a key."""
        self.forgeries: dict[str, bytes] = {}
        """The body of a successful answer to every request whose path contains a key."""
        self.streams_lists = True
        """False: the proxy refuses streaming lists, as old servers do."""
        self.kubeconfig_path = Path()
        self._upstream = upstream
        self._watches: set[_Watch] = set()
        self._is_thawed = asyncio.Event()
        self._is_thawed.set()

    @staticmethod
    @asynccontextmanager
    async def before(plane: ControlPlane, folder: Path) -> AsyncIterator["ApiProxy"]:
        """A proxy in front of a control plane, for as long as the block lasts.

        It sends requests as the administrator.
        """
        tls = ssl.create_default_context(cafile=plane.ca_path)
        async with aiohttp.ClientSession(
            plane.server_url,
            connector=aiohttp.TCPConnector(ssl=tls, limit=0),
            headers={"Authorization": f"Bearer {plane.admin_token}"},
            timeout=aiohttp.ClientTimeout(total=None),
            read_bufsize=_LINE_BYTES,
            auto_decompress=False,
            skip_auto_headers=("Accept-Encoding",),  # the clients of the proxy decide whether to compress
        ) as upstream:
            proxy = ApiProxy(upstream)
            app = web.Application(client_max_size=_LINE_BYTES)
            app.router.add_route("*", "/{tail:.*}", proxy._serve)
            runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
            await runner.setup()
            try:
                await web.TCPSite(runner, LOOPBACK, 0).start()
                proxy.kubeconfig_path = write_kubeconfig(folder, f"http://{LOOPBACK}:{runner.addresses[0][1]}")
                yield proxy
            finally:
                proxy.thaw()
                await runner.cleanup()

    def break_watches(self, fault: WatchFault, *, of: str = "") -> int:
        """Inject a fault into all open watches whose path contains `of`, and return their number."""
        chosen = [watch for watch in self._watches if of in watch.path]
        for watch in chosen:
            watch.fault = fault
            if fault in {WatchFault.END, WatchFault.CUT, WatchFault.EXPIRE}:
                watch.lines.put_nowait((0.0, b""))
        return len(chosen)

    def inject(self, line: bytes, *, of: str = "") -> int:
        """Send a forged line to all open watches whose path contains `of`, and return their number."""
        chosen = [watch for watch in self._watches if of in watch.path]
        for watch in chosen:
            watch.lines.put_nowait((0.0, line))
        return len(chosen)

    def freeze(self) -> None:
        """Stop all traffic in both directions, while connections stay open."""
        self._is_thawed.clear()

    def thaw(self) -> None:
        """Resume all traffic."""
        self._is_thawed.set()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        received = ProxiedRequest(request.method, request.path, dict(request.query))
        self.asked.append(received)
        if received.is_watch or not self.most_at_once:
            return await self._pass_on(received, request)
        if self._at_once >= self.most_at_once:
            self.turned_away += 1
            return web.json_response({"kind": "Status", "code": 429, "message": "busy"}, status=429, headers={"Retry-After": "1"})
        self._at_once += 1
        try:
            await asyncio.sleep(self.busy_seconds)
            return await self._pass_on(received, request)
        finally:
            self._at_once -= 1

    async def _pass_on(self, received: ProxiedRequest, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        await self._is_thawed.wait()
        forged = next((body for part, body in self.forgeries.items() if part in request.path), None)
        if forged is not None:
            return web.Response(body=forged)
        code = next((code for part, code in self.refusals.items() if part in request.path), 0)
        if "sendInitialEvents" in request.query and not self.streams_lists:
            code = 422
        if code:
            return web.json_response({"kind": "Status", "code": code, "message": "injected"}, status=code)
        try:
            return await self._ask_upstream(received, request, body)
        except aiohttp.ClientError as error:
            return web.json_response({"kind": "Status", "code": 502, "message": repr(error)}, status=502)

    async def _ask_upstream(self, received: ProxiedRequest, request: web.Request, body: bytes) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_BY_HOP}
        async with self._upstream.request(request.method, request.rel_url, data=body or None, headers=headers) as answer:
            if received.is_watch and answer.status == 200:
                return await self._relay_watch(request, answer)
            content = await answer.read()
            await self._is_thawed.wait()
            return web.Response(status=answer.status, body=content, headers={"Content-Type": answer.headers.get("Content-Type", "")})

    async def _relay_watch(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        watch = _Watch(request.path)
        self._watches.add(watch)
        reading = asyncio.create_task(self._read(watch, answer))
        try:
            await self._relay_lines(watch, response, request)
        finally:
            self._watches.discard(watch)
            reading.cancel()
            if answer.connection and answer.connection.transport:
                answer.connection.transport.abort()  # a TLS shutdown in the middle of a stream would wait for an answer that never comes
        return response

    async def _read(self, watch: _Watch, answer: aiohttp.ClientResponse) -> None:
        try:
            async for line in answer.content:
                watch.lines.put_nowait((asyncio.get_running_loop().time() + self.watch_delay_seconds, line))
        except aiohttp.ClientError:
            watch.fault = WatchFault.CUT
        watch.lines.put_nowait((0.0, None))

    async def _relay_lines(self, watch: _Watch, response: web.StreamResponse, request: web.Request) -> None:
        """Send lines on until the server or a fault ends the watch."""
        goes_on = True
        while goes_on:
            due, line = await watch.lines.get()
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            await self._is_thawed.wait()
            goes_on = await _relay_line(line, watch, response, request)


async def _relay_line(line: bytes | None, watch: _Watch, response: web.StreamResponse, request: web.Request) -> bool:
    """Send one line on, or inject the fault of its watch; False if that ends the watch."""
    match watch.fault:
        case None if line is None:
            return False
        case None:
            await response.write(line or b"")
            return True
        case WatchFault.GARBLE if line:
            watch.fault = None
            await response.write(b'{"type":"MOD\xff\n')
            return True
        case WatchFault.GARBLE | WatchFault.END:
            return False
        case WatchFault.EXPIRE:
            await response.write(json.dumps(_EXPIRED).encode() + b"\n")
            return False
        case WatchFault.CUT | WatchFault.CUT_WITHIN_A_LINE:
            await response.write((line or b"")[: len(line or b"") // 2])
            if request.transport is not None:
                request.transport.abort()
            return False


def write_kubeconfig(folder: Path, server_url: str) -> Path:
    """The path of a new kubeconfig for a server without authentication."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxy", "cluster": {"server": server_url}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody"}}],
        "current-context": "proxy",
    }
    path = folder / "proxy.kubeconfig"
    path.write_text(json.dumps(config))
    return path
