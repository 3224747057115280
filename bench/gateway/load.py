"""The load on the gateway: as many requests in flight as asked for, each on a connection of its own."""

import asyncio
import json
import statistics
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from time import perf_counter

from bench.gateway.hook import BODY

_LONGEST_LINE = 2**20


@dataclass(slots=True, kw_only=True)
class Load:
    """What a series of calls came to."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list[float])
    errors: int = 0

    @property
    def calls(self) -> int:
        """How many calls were answered."""
        return len(self.latencies)

    @property
    def rate(self) -> float:
        """Calls per second."""
        return self.calls / self.seconds

    @property
    def p50(self) -> float:
        """The median latency in seconds."""
        return statistics.median(self.latencies)

    @property
    def p99(self) -> float:
        """The latency that one call in a hundred exceeds, in seconds."""
        return statistics.quantiles(self.latencies, n=100)[98]


def call_to(hook_port: int, path: str, *, controller: str, timeout: str = "10s") -> bytes:
    """A call of the webhook through the gateway, with everything switched on that a call can use."""
    webhook = {"url": f"http://127.0.0.1:{hook_port}{path}", "timeout": timeout, "etag": {"enabled": True}}
    target = {"controller": {"kind": "CompositeController", "name": controller, "uid": controller}, "hook": "sync", "webhook": webhook}
    head = (
        f"POST /v1/call HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
        f"X-Metaloop-Target: {json.dumps(target)}\r\nX-Metaloop-Parent: parent-1\r\nX-Metaloop-Revision: \r\n"
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n"
    )
    return head.encode() + BODY


def direct_call(path: str) -> bytes:
    """The same call of the webhook, without the gateway."""
    return f"POST {path} HTTP/1.1\r\nHost: hook\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY


async def run_load(port: int, request: bytes, *, in_flight: int, seconds: float) -> Load:
    """So many calls at a time for so long."""
    load = Load()
    began = perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(_keep_calling(port, request, load, until=began + seconds))
    load.seconds = perf_counter() - began
    return load


async def _keep_calling(port: int, request: bytes, load: Load, *, until: float) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_LONGEST_LINE)
    with closing(writer):
        while perf_counter() < until:
            began = perf_counter()
            if not await _call(reader, writer, request):
                load.errors += 1
            load.latencies.append(perf_counter() - began)


async def _call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bool:
    """Send the request; whether the answer has the webhook's own body."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    body = await reader.readexactly(_content_length(head))
    return head.startswith(b"http/1.1 200") and body == BODY


class HangingCalls:
    """Callers of a webhook that never answers; they call while `is_on`, and pause as long as the gateway tells them."""

    def __init__(self, port: int, request: bytes) -> None:
        self._port = port
        self._request = request
        self.is_on = asyncio.Event()

    @asynccontextmanager
    async def running(self, callers: int) -> AsyncIterator[None]:
        """So many callers, for as long as the block lasts."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._keep_calling()) for _ in range(callers)]
            yield
            for task in tasks:
                task.cancel()

    async def _keep_calling(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=_LONGEST_LINE)
        with closing(writer):
            while True:
                await self.is_on.wait()
                writer.write(self._request)
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                verdict = json.loads(await reader.readexactly(_content_length(head)))
                await asyncio.sleep(verdict.get("afterSeconds") or 0.1)


def _content_length(head: bytes) -> int:
    return int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
