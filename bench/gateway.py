"""Measures the hook gateway against its figures: throughput, CPU and latency of a call, memory of slow ones, and what a hanging webhook costs others.

    python -m bench.gateway [--seconds 5] [--rounds 3]

The gateway has one core, the load and the webhook share another. Bodies are 4 KB both ways, and everything that a call can use is switched
on: ETag look-up, trace context, circuit breaker, metrics. Results go to bench/results/gateway.json.
"""

import argparse
import asyncio
import importlib.metadata
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import cast

import uvloop

RESULTS = Path(__file__).parent / "results" / "gateway.json"
GATEWAY_CORE, LOAD_CORE = 0, 1
BODY = b'{"padding":"' + b"x" * 4082 + b'"}'
SLOW_SECONDS = 1.0
HANGING_SECONDS, HANGING_CALLERS = 0.5, 64
LISTENING = "0A"
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure and the bound that it has to hold."""

    name: str
    value: float
    unit: str
    bound: float
    at_most: bool

    @property
    def holds(self) -> bool:
        """Whether the bound is kept."""
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def __str__(self) -> str:
        sign = "<=" if self.at_most else ">="
        return f"{'ok  ' if self.holds else 'FAIL'} {self.name:<61} {self.value:>9.3f} {self.unit:<6} {sign} {self.bound:g}"


# The webhook: answers at once, after a second, or never.


class Hook(asyncio.Protocol):
    """The least HTTP server that keeps connections alive: it must not be what is measured."""

    def __init__(self) -> None:
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its type

    def data_received(self, data: bytes) -> None:
        """Answer each request that is complete."""
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self._received[:end]).lower()
            size = end + 4 + int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
            if len(self._received) < size:
                return
            del self._received[:size]
            self._answer(head)

    def _answer(self, head: bytes) -> None:
        if head.startswith(b"post /slow"):
            asyncio.get_running_loop().call_later(SLOW_SECONDS, self._write)
        elif not head.startswith(b"post /hang"):
            self._write()

    def _write(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(ANSWER)


ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nETag: "v1"\r\nContent-Length: %d\r\n\r\n%s' % (len(BODY), BODY)


async def serve_hook(port: int) -> None:
    """Serve the webhook for ever."""
    server = await asyncio.get_running_loop().create_server(Hook, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


# The load: as many requests in flight as asked for, each on its own connection.


@dataclass(slots=True)
class Load:
    """What a run of calls came to."""

    latencies: list[float] = field(default_factory=list)
    errors: int = 0


def call_to(hook_port: int, path: str, *, controller: str, timeout: str = "10s") -> bytes:
    """The bytes of one call to the gateway."""
    webhook = {"url": f"http://127.0.0.1:{hook_port}{path}", "timeout": timeout, "etag": {"enabled": True}}
    target = {"controller": {"kind": "CompositeController", "name": controller, "uid": controller}, "hook": "sync", "webhook": webhook}
    head = (
        f"POST /v1/call HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n"
        f"X-Metaloop-Target: {json.dumps(target)}\r\nX-Metaloop-Parent: parent-1\r\nX-Metaloop-Revision: \r\n"
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n"
    )
    return head.encode() + BODY


def call_directly(path: str) -> bytes:
    """The bytes of the same request to the webhook, without a gateway."""
    return f"POST {path} HTTP/1.1\r\nHost: hook\r\nContent-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY


async def one_call(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> bool:
    """Send the request; whether it was answered by the webhook's own body."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    size = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
    body = await reader.readexactly(size)
    return head.startswith(b"http/1.1 200") and body == BODY


async def keep_calling(port: int, request: bytes, load: Load, *, until: float) -> None:
    """Call one after another until the time is over."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    while perf_counter() < until:
        began = perf_counter()
        if not await one_call(reader, writer, request):
            load.errors += 1
        load.latencies.append(perf_counter() - began)
    writer.close()


async def run_load(port: int, request: bytes, *, in_flight: int, seconds: float) -> Load:
    """So many calls at a time for so long."""
    load = Load()
    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(keep_calling(port, request, load, until=perf_counter() + seconds))
    return load


# The gateway under test.


@dataclass(frozen=True, slots=True)
class Process:
    """A process being measured, by what the kernel says of it."""

    pid: int
    port: int

    def cpu_seconds(self) -> float:
        """Processor time used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident_bytes(self) -> int:
        """Memory in use now."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def running(command: Sequence[str], *, core: int, port: int, env: dict[str, str]) -> AsyncIterator[Process]:
    """A process on one core that listens on the port, ended when the scope ends."""
    process = subprocess.Popen(command, env=os.environ | env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: ASYNC220 - it begins a measurement, nothing else runs
    os.sched_setaffinity(process.pid, {core})
    try:
        await until_listening(port)
        yield Process(process.pid, port)
    finally:
        process.terminate()
        process.wait()


async def until_listening(port: int, *, processes: int = 1) -> None:
    """Wait until so many processes listen on the port."""
    async with asyncio.timeout(20):
        while True:
            if listeners(port) >= processes:
                return
            await asyncio.sleep(0.05)


def listeners(port: int) -> int:
    """How many sockets listen on the port, as the kernel's table has it."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(1 for row in rows if row[1].endswith(f":{port:04X}") and row[3] == LISTENING)


# The measurements.


async def throughput(gateway: Process, hook_port: int, *, in_flight: int, seconds: float) -> tuple[float, float]:
    """Calls per second, and CPU milliseconds per call."""
    request = call_to(hook_port, "/sync", controller="steady")
    await run_load(gateway.port, request, in_flight=in_flight, seconds=1)
    cpu, began = gateway.cpu_seconds(), perf_counter()
    load = await run_load(gateway.port, request, in_flight=in_flight, seconds=seconds)
    calls, spent = len(load.latencies), gateway.cpu_seconds() - cpu
    assert not load.errors, f"{load.errors} calls failed"
    return calls / (perf_counter() - began), spent / calls * 1000


async def added_latency(gateway: Process, hook_port: int, *, seconds: float) -> float:
    """Milliseconds that a single call takes longer through the gateway than without it, p50."""
    through = await run_load(gateway.port, call_to(hook_port, "/sync", controller="steady"), in_flight=1, seconds=seconds)
    direct = await run_load(hook_port, call_directly("/sync"), in_flight=1, seconds=seconds)
    return (statistics.median(through.latencies) - statistics.median(direct.latencies)) * 1000


async def slow_calls(gateway: Process, hook_port: int, *, in_flight: int) -> tuple[int, float]:
    """Errors, and KiB of memory per call, with so many slow calls in flight."""
    before = gateway.resident_bytes()
    request = call_to(hook_port, "/slow", controller="slow")
    async with asyncio.TaskGroup() as group:
        running_load = group.create_task(run_load(gateway.port, request, in_flight=in_flight, seconds=2.5 * SLOW_SECONDS))
        highest = before
        while not running_load.done():
            highest = max(highest, gateway.resident_bytes())
            await asyncio.sleep(0.05)
    return running_load.result().errors, (highest - before) / in_flight / 1024


def p99(latencies: list[float]) -> float:
    """The latency that one call in a hundred exceeds."""
    return statistics.quantiles(latencies, n=100)[98]


async def beside_a_hanging_one(gateway: Process, hook_port: int, *, seconds: float) -> float:
    """How many times longer the p99 of a good webhook's calls is while another one hangs.

    Both are measured in turns, a second each, and each second is compared with the one before: the median of that is not moved by what else
    the machine did in one of them.
    """
    good = call_to(hook_port, "/sync", controller="good")
    ratios: list[float] = []
    async with asyncio.TaskGroup() as group:
        asking = asyncio.Event()
        hanging = call_to(hook_port, "/hang", controller="hanging", timeout=f"{HANGING_SECONDS}s")
        callers = [group.create_task(keep_asking(gateway.port, hanging, asking)) for _ in range(HANGING_CALLERS)]
        for _ in range(max(2, round(seconds))):
            alone = p99((await run_load(gateway.port, good, in_flight=8, seconds=1)).latencies)
            asking.set()
            ratios.append(p99((await run_load(gateway.port, good, in_flight=8, seconds=1)).latencies) / alone)
            asking.clear()
            await asyncio.sleep(1.5 * HANGING_SECONDS)  # until the last of the hanging calls has been cut
        for caller in callers:
            caller.cancel()
    return statistics.median(ratios)


async def keep_asking(port: int, request: bytes, asking: asyncio.Event) -> None:
    """A caller of the hanging webhook, who comes back when the gateway tells it to."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    while True:
        await asking.wait()
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        body = json.loads(await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0])))
        await asyncio.sleep(body.get("afterSeconds") or 0.1)


async def smaller_share_of_two(hook_port: int, *, seconds: float) -> float:
    """Of two gateway processes behind one port, the share of the calls that the less busy one serves; fails if any call does."""
    port = free_port()
    settings = {"METALOOP_PORT": str(port), "METALOOP_LOG_LEVEL": "warning", "METALOOP_REUSE_PORT": "true"}
    command = [sys.executable, "-m", "metaloop.hookgateway"]
    async with (
        running(command, core=GATEWAY_CORE, port=port, env=settings) as one,
        running(command, core=GATEWAY_CORE, port=port, env=settings) as other,
    ):
        await until_listening(port, processes=2)
        before = [process.cpu_seconds() for process in (one, other)]
        load = await run_load(port, call_to(hook_port, "/sync", controller="steady"), in_flight=128, seconds=seconds)
        spent = [process.cpu_seconds() - cpu for process, cpu in zip((one, other), before, strict=True)]
    assert not load.errors, f"{load.errors} calls failed"
    return min(spent) / sum(spent)


async def measure(*, seconds: float, rounds: int) -> list[Figure]:
    """Every figure, over all rounds."""
    os.sched_setaffinity(0, {LOAD_CORE})
    hook_port, gateway_port = free_port(), free_port()
    hook = running([sys.executable, __file__, "--hook", str(hook_port)], core=LOAD_CORE, port=hook_port, env={})
    settings = {"METALOOP_PORT": str(gateway_port), "METALOOP_LOG_LEVEL": "warning"}
    gateway = running([sys.executable, "-m", "metaloop.hookgateway"], core=GATEWAY_CORE, port=gateway_port, env=settings)
    async with hook, gateway as process:
        found: dict[str, list[float]] = {}
        for _ in range(rounds):
            for name, value in (await one_round(process, hook_port, seconds=seconds)).items():
                found.setdefault(name, []).append(value)
    return [
        Figure(name=name, value=over_rounds(found[name]), unit=unit, bound=bound, at_most=at_most)
        for name, unit, bound, at_most, over_rounds in BOUNDS
    ]


BOUNDS = (
    ("calls per second, 16 in flight", "/s", 2000, False, statistics.median),
    ("CPU per call, 16 in flight", "ms", 0.5, True, statistics.median),
    ("calls per second, 128 in flight", "/s", 2000, False, statistics.median),
    ("CPU per call, 128 in flight", "ms", 0.5, True, statistics.median),
    ("added latency of a single call, p50", "ms", 1.0, True, statistics.median),
    ("512 slow calls in flight: errors", "", 0, True, max),
    # Memory that was once taken is used again: only the first round shows what it takes.
    ("512 slow calls in flight: memory per call", "KiB", 100, True, max),
    ("p99 beside a hanging webhook, times that without", "x", 1.1, True, statistics.median),
    ("two processes behind one port: the smaller share of the work", "", 0.25, False, statistics.median),
)


async def one_round(gateway: Process, hook_port: int, *, seconds: float) -> dict[str, float]:
    """Each figure once, by its name."""
    rate_16, cpu_16 = await throughput(gateway, hook_port, in_flight=16, seconds=seconds)
    rate_128, cpu_128 = await throughput(gateway, hook_port, in_flight=128, seconds=seconds)
    latency = await added_latency(gateway, hook_port, seconds=seconds / 2)
    errors, memory = await slow_calls(gateway, hook_port, in_flight=512)
    hanging = await beside_a_hanging_one(gateway, hook_port, seconds=seconds)
    share = await smaller_share_of_two(hook_port, seconds=seconds / 2)
    values = (rate_16, cpu_16, rate_128, cpu_128, latency, errors, memory, hanging, share)
    return dict(zip((name for name, *_ in BOUNDS), values, strict=True))


def record(figures: list[Figure]) -> None:
    """Write the figures down, with what they were measured on."""
    packages = ("aiohttp", "fastapi", "uvicorn", "uvloop", "httptools")
    RESULTS.parent.mkdir(exist_ok=True)
    written = {
        "machine": {"cpus": os.cpu_count(), "cpu": cpu_model(), "system": platform.platform()},
        "versions": {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in packages},
        "figures": [{"name": f.name, "value": round(f.value, 4), "unit": f.unit, "bound": f.bound, "holds": f.holds} for f in figures],
    }
    RESULTS.write_text(json.dumps(written, indent=2) + "\n")


def cpu_model() -> str:
    """What the kernel calls the processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def main() -> int:
    """Measure, print, record; 1 if a bound is broken."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=5, help="how long each load lasts")
    options.add_argument("--rounds", type=int, default=3, help="how often everything is measured")
    options.add_argument("--hook", type=int, metavar="PORT", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.hook:
        uvloop.run(serve_hook(chosen.hook))
        return 0
    figures = uvloop.run(measure(seconds=chosen.seconds, rounds=chosen.rounds))
    record(figures)
    print("\n".join(map(str, figures)))
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
