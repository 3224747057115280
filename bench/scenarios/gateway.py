"""The hook gateway by itself: rate, CPU and latency of calls, memory of slow ones, and what a hanging webhook costs.

The gateway has one core; the load and the webhook share another. Bodies are 4 KB both ways, and everything that a call
can use is switched on: ETags, trace context, circuit breaker, metrics.
"""

import asyncio
import os
import statistics
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench import bounds
from bench.figures import Figure, Raw
from bench.gateway.hook import BODY, SLOW_SECONDS
from bench.gateway.load import HangingCalls, Load, call_to, direct_call, run_load
from bench.run import Run
from bench.usage import cpu_seconds
from metaloop.devkit.ports import free_port

_GATEWAY_CORE, _LOAD_CORE = 0, 1
_SECONDS = 5.0
_SLOW_CALLS = 512
_HANGING_SECONDS, _HANGING_CALLERS = 0.5, 64
_HOOK = Path(__file__).parent.parent / "gateway" / "hook.py"
_LISTENING = "0A"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Process:
    """A running process, and the port that it listens on."""

    pid: int
    port: int


async def measure(run: Run) -> list[Figure]:
    """Calls through the gateway, of a webhook that answers at once, after a second, or never."""
    seconds = _SECONDS / run.divisor
    with _pinned_to(_LOAD_CORE):
        async with _hook() as hook, _gateway(free_port()) as gateway:
            many = await _through(gateway, hook, in_flight=16, seconds=seconds)
            very_many = await _through(gateway, hook, in_flight=128, seconds=seconds)
            added = await _added_seconds(gateway, hook, seconds=seconds / 2)
            slow, memory = await _slow_calls(gateway, hook)
            hanging = await _beside_hanging(gateway, hook, rounds=max(2, round(seconds)))
            share = await _smaller_share_of_two(hook, seconds=seconds / 2)
    return [
        run.judge_seconds(bounds.GATEWAY_TIME_16, 1_000 / many.rate),
        run.judge_cpu(bounds.GATEWAY_CPU_16, many.cpu_per_call),
        run.judge_seconds(bounds.GATEWAY_TIME_128, 1_000 / very_many.rate),
        run.judge_cpu(bounds.GATEWAY_CPU_128, very_many.cpu_per_call),
        run.judge_seconds(bounds.GATEWAY_LATENCY, added),
        run.judge(bounds.GATEWAY_SLOW_ERRORS, slow.errors),
        run.judge(bounds.GATEWAY_MEMORY, memory / (2 * len(BODY)), raw=Raw(value=memory / 1024, unit="KiB")),
        run.judge(bounds.GATEWAY_HANGING, hanging),
        run.judge(bounds.GATEWAY_SHARE, share),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Through:
    """What a load through the gateway came to."""

    rate: float
    """Calls per second."""
    cpu_per_call: float
    """CPU seconds of the gateway."""


async def _through(gateway: _Process, hook: _Process, *, in_flight: int, seconds: float) -> _Through:
    request = call_to(hook.port, "/sync", controller="steady")
    await run_load(gateway.port, request, in_flight=in_flight, seconds=seconds / 5)
    cpu = cpu_seconds(gateway.pid)
    load = await run_load(gateway.port, request, in_flight=in_flight, seconds=seconds)
    spent = cpu_seconds(gateway.pid) - cpu
    _assert_no_errors(load)
    return _Through(rate=load.rate, cpu_per_call=spent / load.calls)


async def _added_seconds(gateway: _Process, hook: _Process, *, seconds: float) -> float:
    """How much longer a single call takes through the gateway than without it, p50."""
    through = await run_load(gateway.port, call_to(hook.port, "/sync", controller="steady"), in_flight=1, seconds=seconds)
    direct = await run_load(hook.port, direct_call("/sync"), in_flight=1, seconds=seconds)
    return through.p50 - direct.p50


async def _slow_calls(gateway: _Process, hook: _Process) -> tuple[Load, float]:
    """The load of slow calls, and the bytes of memory that each of them took."""
    before = psutil.Process(gateway.pid).memory_info().rss
    request = call_to(hook.port, "/slow", controller="slow")
    async with asyncio.TaskGroup() as group:
        load = group.create_task(run_load(gateway.port, request, in_flight=_SLOW_CALLS, seconds=2.5 * SLOW_SECONDS))
        highest = before
        while not load.done():
            highest = max(highest, psutil.Process(gateway.pid).memory_info().rss)
            await asyncio.sleep(0.05)
    return load.result(), (highest - before) / _SLOW_CALLS


async def _beside_hanging(gateway: _Process, hook: _Process, *, rounds: int) -> float:
    """How many times longer the p99 of a good webhook's calls is while another webhook hangs.

    Both are measured in turns of a second, and each turn is compared with the one before. The median of that does not
    depend on what else the machine did in one of them.
    """
    good = call_to(hook.port, "/sync", controller="good")
    hanging = HangingCalls(gateway.port, call_to(hook.port, "/hang", controller="hanging", timeout=f"{_HANGING_SECONDS}s"))
    ratios: list[float] = []
    async with hanging.running(_HANGING_CALLERS):
        for _ in range(rounds):
            alone = await run_load(gateway.port, good, in_flight=8, seconds=1)
            hanging.is_on.set()
            beside = await run_load(gateway.port, good, in_flight=8, seconds=1)
            hanging.is_on.clear()
            ratios.append(beside.p99 / alone.p99)
            await asyncio.sleep(1.5 * _HANGING_SECONDS)  # until the last of the hanging calls has timed out
    return statistics.median(ratios)


async def _smaller_share_of_two(hook: _Process, *, seconds: float) -> float:
    """The smaller share of the work of two gateway processes behind one port. Raises AssertionError if a call fails."""
    port = free_port()
    async with _gateway(port, REUSE_PORT="true") as one, _gateway(port, REUSE_PORT="true") as other:
        await _until_listening(port, processes=2)
        before = [cpu_seconds(process.pid) for process in (one, other)]
        load = await run_load(port, call_to(hook.port, "/sync", controller="steady"), in_flight=128, seconds=seconds)
        spent = [cpu_seconds(process.pid) - cpu for process, cpu in zip((one, other), before, strict=True)]
    _assert_no_errors(load)
    return min(spent) / sum(spent)


def _assert_no_errors(load: Load) -> None:
    if load.errors:
        raise AssertionError(f"{load.errors} of {load.calls} calls failed")


@contextmanager
def _pinned_to(core: int) -> Iterator[None]:
    """This process runs on one core for as long as the block lasts."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _hook() -> AbstractAsyncContextManager[_Process]:
    port = free_port()
    return _running((str(_HOOK), str(port)), core=_LOAD_CORE, port=port, env={})


def _gateway(port: int, **settings: str) -> AbstractAsyncContextManager[_Process]:
    env = {f"METALOOP_{name}": value for name, value in {"PORT": str(port), "LOG_LEVEL": "warning", **settings}.items()}
    return _running(("-m", "metaloop.hookgateway"), core=_GATEWAY_CORE, port=port, env=env)


@asynccontextmanager
async def _running(argv: tuple[str, ...], *, core: int, port: int, env: Mapping[str, str]) -> AsyncIterator[_Process]:
    """A Python process on one core that listens on the port, for as long as the block lasts."""
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(sys.executable, *argv, env={**os.environ, **env}, stdout=quiet, stderr=quiet)
    os.sched_setaffinity(process.pid, {core})
    try:
        await _until_listening(port)
        yield _Process(pid=process.pid, port=port)
    finally:
        process.terminate()
        await process.wait()


async def _until_listening(port: int, *, processes: int = 1) -> None:
    """Wait until so many processes listen on the port."""
    async with asyncio.timeout(20):
        while _listeners(port) < processes:  # noqa: ASYNC110 - the kernel's table can only be polled
            await asyncio.sleep(0.05)


def _listeners(port: int) -> int:
    """How many sockets listen on the port, by the kernel's table."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(1 for row in rows if row[1].endswith(f":{port:04X}") and row[3] == _LISTENING)
