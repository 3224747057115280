"""What the job protocol costs: CPU per job of watcher, workers and nats-server, jobs per second, and delay at rest.

    python -m bench.protocol.cpu [--jobs 20000] [--workers 2] [--rounds 3]

Syncs do nothing, and observations have 2 KB: only the protocol is measured.
"""

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.protocol.table import Table
from bench.usage import cpu_seconds
from metaloop.devkit.broker import Broker

_SECONDS = 300
_WARM_UP_JOBS = 2_000
_SINGLE_JOBS_PER_WORKER = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Everything that takes part."""

    table: Table
    broker: Broker
    watcher: asyncio.subprocess.Process
    workers: list[asyncio.subprocess.Process]

    def cpu_seconds(self) -> list[float]:
        """CPU of the watcher, of all workers together and of nats-server so far."""
        workers = sum(cpu_seconds(worker.pid) for worker in self.workers)
        return [cpu_seconds(self.watcher.pid), workers, cpu_seconds(self.broker.pid)]

    async def burst(self, jobs: int) -> float:
        """Mark so many keys at once; when all were finished, on the monotonic clock."""
        done = (await self._counts())["finished"] + jobs
        self.table.send_to_watchers({"type": "burst", "count": jobs})
        while True:
            await asyncio.sleep(0.05)
            now = await self._counts()
            if now["finished"] >= done:
                return now["at"]

    async def _counts(self) -> dict[str, float]:
        """The counts of the watcher's queue, and its time."""
        assert self.watcher.stdout
        self.table.send_to_watchers({"type": "counts"})
        return json.loads(await self.watcher.stdout.readline())


@asynccontextmanager
async def running(*, workers: int) -> AsyncIterator[Protocol]:
    """Table, NATS, watcher and workers, for as long as the block lasts."""
    table = Table(0, lease_seconds=5.0)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        broker = await stack.enter_async_context(Broker.start(Path(folder)))
        await stack.enter_async_context(table.serving())
        processes = [await _process(role, broker, table) for role in ("watcher", *["worker"] * workers)]
        stack.push_async_callback(_kill, processes)
        await table.watching.wait()
        yield Protocol(table=table, broker=broker, watcher=processes[0], workers=processes[1:])


async def _process(role: str, broker: Broker, table: Table) -> asyncio.subprocess.Process:
    argv = ("-m", "bench.protocol.processes", role, "--nats", broker.url, "--table", str(table.port), "--idle", "--hook", "0")
    return await asyncio.create_subprocess_exec(sys.executable, *argv, stdout=asyncio.subprocess.PIPE)


async def _kill(processes: list[asyncio.subprocess.Process]) -> None:
    for process in processes:
        process.kill()
        await process.wait()


async def measure(args: argparse.Namespace) -> None:
    """Print the cost of bursts of jobs, and then the delay of single ones."""
    async with asyncio.timeout(_SECONDS), running(workers=args.workers) as protocol:
        await protocol.burst(_WARM_UP_JOBS)
        for _ in range(args.rounds):
            print(await _burst_cost(protocol, jobs=args.jobs))
        for _ in range(_SINGLE_JOBS_PER_WORKER * args.workers):
            protocol.table.send_to_watchers({"type": "burst", "count": 1})
            await asyncio.sleep(random.uniform(0.005, 0.015))
        for worker in protocol.workers:
            print("mark to sync at rest, the last hundred:", await _last_line(worker))


async def _burst_cost(protocol: Protocol, *, jobs: int) -> str:
    """The jobs per second of a burst, and the CPU per job of each part."""
    before, began = protocol.cpu_seconds(), time.monotonic()
    ended = await protocol.burst(jobs)
    micros = [1e6 * (now - was) / jobs for now, was in zip(protocol.cpu_seconds(), before, strict=True)]
    cpu = f"watcher {micros[0]:.0f} us, workers {micros[1]:.0f} us, nats-server {micros[2]:.0f} us"
    return f"{jobs / (ended - began):6.0f} jobs/s; CPU per job: {cpu}"


async def _last_line(worker: asyncio.subprocess.Process) -> str:
    """The last line that a worker has printed so far."""
    line = b""
    with contextlib.suppress(TimeoutError):
        while newer := await _line_within(worker, seconds=0.5):
            line = newer
    return line.decode().strip()


async def _line_within(worker: asyncio.subprocess.Process, *, seconds: float) -> bytes:
    assert worker.stdout
    async with asyncio.timeout(seconds):
        return await worker.stdout.readline()


def main() -> None:
    """Read the arguments, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
