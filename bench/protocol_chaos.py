"""Kills and stalls everything that takes part in the job protocol, and checks that no key is lost and no two workers share one.

    python bench/protocol_chaos.py --seconds 60 [--seed 7] [--workers 4] [--keys 200]

Exits with 1 where a row is not as desired in the end, or the judge of `protocol_truth.py` saw what may not be.
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
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from protocol_truth import Truth

from metaloop.devkit.broker import Broker

ACK_WAIT_SECONDS = 2.0
_ROLES = Path(__file__).with_name("protocol_roles.py")


@dataclass(slots=True, eq=False)
class Role:
    """A process that is started again whenever we killed it."""

    argv: list[str]
    log: Path
    process: asyncio.subprocess.Process | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while something is done to it: there is never more than one of it."""

    async def start(self) -> None:
        """Start it, without waiting until it does anything."""
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(sys.executable, *self.argv, stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid if self.process else 0

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""
        if self.process and self.process.returncode is None:
            self.process.send_signal(number)

    async def kill(self) -> None:
        """End it, stopped or not."""
        self.send(signal.SIGKILL)
        if self.process:
            await self.process.wait()


@dataclass(slots=True, eq=False)
class Chaos:
    """All that takes part, and what is done to it."""

    truth: Truth
    broker: Broker
    watcher: Role
    workers: list[Role]
    done: Counter[str] = field(default_factory=Counter[str])
    nats: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while NATS is hit: it can be down only once at a time."""

    async def kill_worker(self) -> None:
        """SIGKILL."""
        worker = random.choice(self.workers)
        async with worker.lock:
            await worker.kill()
            await worker.start()

    async def stall_worker(self) -> None:
        """SIGSTOP, for less or more than a lease."""
        worker = random.choice(self.workers)
        async with worker.lock:
            self.truth.stood_still[worker.pid] = float("inf")
            worker.send(signal.SIGSTOP)
            await asyncio.sleep(random.uniform(0.05, 2.5 * ACK_WAIT_SECONDS))
            worker.send(signal.SIGCONT)
            self.truth.stood_still[worker.pid] = time.monotonic()

    async def kill_watcher(self) -> None:
        """SIGKILL, and sometimes a pause."""
        async with self.watcher.lock:
            self.truth.hit_at = time.monotonic()
            await self.watcher.kill()
            await asyncio.sleep(random.choice([0.0, 0.0, random.uniform(0, 2 * ACK_WAIT_SECONDS)]))
            await self.watcher.start()
            self.truth.hit_at = time.monotonic()

    async def stall_watcher(self) -> None:
        """SIGSTOP."""
        async with self.watcher.lock:
            self.truth.hit_at = time.monotonic()
            self.watcher.send(signal.SIGSTOP)
            await asyncio.sleep(random.uniform(0.05, 1.5 * ACK_WAIT_SECONDS))
            self.watcher.send(signal.SIGCONT)
            self.truth.hit_at = time.monotonic()

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

    async def _nats(self, hit: Callable[[], Awaitable[None]], heal: Callable[[], Awaitable[None]]) -> None:
        async with self.nats:
            self.truth.hit_at = time.monotonic()
            await hit()
            await asyncio.sleep(random.choice([0.0, random.uniform(0, 1.5 * ACK_WAIT_SECONDS)]))
            await heal()
            self.truth.hit_at = time.monotonic()

    async def strike(self) -> None:
        """One blow."""
        blows = {
            self.kill_worker: 8, self.stall_worker: 6, self.kill_watcher: 2, self.stall_watcher: 2,
            self.kill_nats: 1, self.wipe_nats: 1, self.stall_nats: 1,
        }  # fmt: skip
        blow = random.choices(list(blows), weights=list(blows.values()))[0]
        self.done[blow.__name__] += 1
        await blow()


@asynccontextmanager
async def everything(args: argparse.Namespace, folder: Path) -> AsyncIterator[Chaos]:
    """Table, NATS, watcher and workers, for the length of the block."""
    truth = Truth(args.keys, lease_seconds=ACK_WAIT_SECONDS)

    def role(name: str, log: str) -> Role:
        common = ["--nats", broker.url, "--truth", str(truth.port), "--ack-wait", str(ACK_WAIT_SECONDS), "--hook", "0.02"]
        return Role([str(_ROLES), name, *common], folder / f"{log}.log")

    async with Broker.start(folder) as broker, truth.serving():
        chaos = Chaos(truth, broker, role("watcher", "watcher"), [role("worker", f"worker{n}") for n in range(args.workers)])
        try:
            for each in [chaos.watcher, *chaos.workers]:
                await each.start()
            yield chaos
        finally:
            for each in [chaos.watcher, *chaos.workers]:
                await each.kill()


async def disturb(chaos: Chaos, *, seconds: float) -> None:
    """Change rows and strike, both at random, for so long; several blows may be under way at once."""
    ends = time.monotonic() + seconds

    async def change() -> None:
        while time.monotonic() < ends:
            chaos.truth.change(random.choice(list(chaos.truth.rows)))
            await asyncio.sleep(random.expovariate(100))

    async def strike() -> None:
        while time.monotonic() < ends:
            await asyncio.sleep(random.uniform(0.1, 1.0))
            await chaos.strike()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(change())
        for _ in range(3):
            tasks.create_task(strike())


async def settle(truth: Truth, *, seconds: float) -> float:
    """How long it took until every row was as desired; `TimeoutError` where it took too long."""
    began = time.monotonic()
    async with asyncio.timeout(seconds):
        while truth.unequal:  # noqa: ASYNC110 - polled for what is true in the end
            await asyncio.sleep(0.05)
    return time.monotonic() - began


async def run(args: argparse.Namespace) -> int:
    """The exit code of one run."""
    with tempfile.TemporaryDirectory() as folder:
        async with everything(args, Path(folder)) as chaos:
            await chaos.truth.watching.wait()
            await disturb(chaos, seconds=args.seconds)
            lost: list[str] = []
            try:
                healed = f"healed in {await settle(chaos.truth, seconds=30):.1f} s"
            except TimeoutError:
                lost = chaos.truth.unequal
                healed = f"NOT HEALED: {lost}"
            faults = [name for name in chaos.truth.counts if name.isupper()]
            print(f"seed {args.seed}: {healed}; {dict(chaos.truth.counts)}; blows {dict(chaos.done)}")
            if args.keep and (lost or faults):
                keep(Path(folder), Path(args.keep))
    return 1 if lost or faults else 0


def keep(folder: Path, target: Path) -> None:
    """Copy the logs."""
    target.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("*.log"):
        (target / log.name).write_bytes(log.read_bytes())


def main() -> None:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--keep", default="", help="where to keep the logs of a run that failed")
    args = parser.parse_args()
    random.seed(args.seed)
    print(f"seed {args.seed}", flush=True)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(asyncio.run(run(args)))


if __name__ == "__main__":
    main()
