"""Kills and stalls everything that takes part in the job protocol: no key may be lost, or held by two workers.

    python -m bench.protocol.chaos --seconds 60 [--seed 7] [--workers 4] [--keys 200]

Exits with 1 if a row is not as desired in the end, or if `bench.protocol.table` saw a violation.
"""

import argparse
import asyncio
import contextlib
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from bench.protocol.table import Table
from metaloop.devkit.broker import Broker

ACK_WAIT_SECONDS = 2.0


@dataclass(slots=True, eq=False)
class Participant:
    """A process that is started again after it was killed."""

    argv: list[str]
    log: Path
    process: asyncio.subprocess.Process | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held during a fault, so that it never runs twice."""

    async def start(self) -> None:
        """Start it, without waiting until it is ready."""
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(sys.executable, *self.argv, stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid if self.process else 0

    def send(self, number: signal.Signals) -> None:
        """Send it a signal if it is running."""
        if self.process and self.process.returncode is None:
            self.process.send_signal(number)

    async def kill(self) -> None:
        """End it with SIGKILL, stalled or not."""
        self.send(signal.SIGKILL)
        if self.process:
            await self.process.wait()


@dataclass(slots=True, eq=False)
class Chaos:
    """Everything that takes part, and the faults."""

    table: Table
    broker: Broker
    watcher: Participant
    workers: list[Participant]
    done: Counter[str] = field(default_factory=Counter[str])
    nats: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held during a fault of NATS, which can be down only once at a time."""

    async def kill_worker(self) -> None:
        """SIGKILL."""
        worker = random.choice(self.workers)
        async with worker.lock:
            await worker.kill()
            await worker.start()

    async def stall_worker(self) -> None:
        """Stall one with SIGSTOP, for less or more than a lease."""
        worker = random.choice(self.workers)
        async with worker.lock:
            self.table.stalled_at[worker.pid] = float("inf")
            worker.send(signal.SIGSTOP)
            await asyncio.sleep(random.uniform(0.05, 2.5 * ACK_WAIT_SECONDS))
            worker.send(signal.SIGCONT)
            self.table.stalled_at[worker.pid] = time.monotonic()

    async def kill_watcher(self) -> None:
        """SIGKILL, and sometimes a pause."""
        async with self.watcher.lock:
            self.table.fault_at = time.monotonic()
            await self.watcher.kill()
            await asyncio.sleep(random.choice([0.0, 0.0, random.uniform(0, 2 * ACK_WAIT_SECONDS)]))
            await self.watcher.start()
            self.table.fault_at = time.monotonic()

    async def stall_watcher(self) -> None:
        """SIGSTOP."""
        async with self.watcher.lock:
            self.table.fault_at = time.monotonic()
            self.watcher.send(signal.SIGSTOP)
            await asyncio.sleep(random.uniform(0.05, 1.5 * ACK_WAIT_SECONDS))
            self.watcher.send(signal.SIGCONT)
            self.table.fault_at = time.monotonic()

    async def kill_nats(self) -> None:
        """SIGKILL, and sometimes a pause."""
        await self._nats(self.broker.kill, self.broker.restart)

    async def wipe_nats(self) -> None:
        """SIGKILL, with the store gone."""

        async def nothing() -> None: ...

        await self._nats(self.broker.wipe, nothing)

    async def stall_nats(self) -> None:
        """SIGSTOP."""

        async def pause() -> None:
            self.broker.daemon.pause()

        async def resume() -> None:
            self.broker.daemon.resume()

        await self._nats(pause, resume)

    async def _nats(self, fail: Callable[[], Awaitable[None]], recover: Callable[[], Awaitable[None]]) -> None:
        async with self.nats:
            self.table.fault_at = time.monotonic()
            await fail()
            await asyncio.sleep(random.choice([0.0, random.uniform(0, 1.5 * ACK_WAIT_SECONDS)]))
            await recover()
            self.table.fault_at = time.monotonic()

    async def cause_fault(self) -> None:
        """Cause one fault, chosen at random."""
        faults = {
            self.kill_worker: 8, self.stall_worker: 6, self.kill_watcher: 2, self.stall_watcher: 2,
            self.kill_nats: 1, self.wipe_nats: 1, self.stall_nats: 1,
        }  # fmt: skip
        fault = random.choices(list(faults), weights=list(faults.values()))[0]
        self.done[fault.__name__] += 1
        await fault()


@asynccontextmanager
async def everything(args: argparse.Namespace, folder: Path) -> AsyncIterator[Chaos]:
    """Table, NATS, watcher and workers, for as long as the block lasts."""
    table = Table(args.keys, lease_seconds=ACK_WAIT_SECONDS)

    def participant(role: str, log: str) -> Participant:
        common = ["--nats", broker.url, "--table", str(table.port), "--ack-wait", str(ACK_WAIT_SECONDS), "--hook", "0.02"]
        return Participant(["-m", "bench.protocol.processes", role, *common], folder / f"{log}.log")

    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(Broker.start(folder))
        await stack.enter_async_context(table.serving())
        workers = [participant("worker", f"worker{number}") for number in range(args.workers)]
        chaos = Chaos(table, broker, participant("watcher", "watcher"), workers)
        for each in (chaos.watcher, *workers):
            stack.push_async_callback(each.kill)
            await each.start()
        yield chaos


async def disturb(chaos: Chaos, *, seconds: float) -> None:
    """Change rows and cause faults at random for so long; several faults may be under way at once."""
    ends = time.monotonic() + seconds

    async def change_rows() -> None:
        while time.monotonic() < ends:
            chaos.table.change(random.choice(list(chaos.table.rows)))
            await asyncio.sleep(random.expovariate(100))

    async def cause_faults() -> None:
        while time.monotonic() < ends:
            await asyncio.sleep(random.uniform(0.1, 1.0))
            await chaos.cause_fault()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(change_rows())
        for _ in range(3):
            tasks.create_task(cause_faults())


async def ending(table: Table, *, seconds: float) -> str:
    """How it ended: after how many seconds all rows were as desired, or which of them never were."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            await _converged(table)
    except TimeoutError:
        return f"NOT CONVERGED: {table.unequal}"
    return f"converged in {time.monotonic() - began:.1f} s"


async def _converged(table: Table) -> None:
    while table.unequal:  # noqa: ASYNC110 - the table is polled
        await asyncio.sleep(0.05)


async def run(args: argparse.Namespace, folder: Path) -> int:
    """The exit code of one run."""
    async with everything(args, folder) as chaos:
        await chaos.table.watching.wait()
        await disturb(chaos, seconds=args.seconds)
        print(f"seed {args.seed}: {await ending(chaos.table, seconds=30)}; {dict(chaos.table.counts)}; faults {dict(chaos.done)}")
        has_failed = bool(chaos.table.unequal or chaos.table.violations)
    if args.keep and has_failed:
        keep(folder, Path(args.keep))
    return 1 if has_failed else 0


def keep(folder: Path, target: Path) -> None:
    """Copy the logs of all participants."""
    target.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("*.log"):
        (target / log.name).write_bytes(log.read_bytes())


def main() -> None:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--keep", default="", help="where to keep the logs of a run that failed")
    args = parser.parse_args()
    random.seed(args.seed)
    print(f"seed {args.seed}", flush=True)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with contextlib.suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as folder:
        sys.exit(asyncio.run(run(args, Path(folder))))


if __name__ == "__main__":
    main()
