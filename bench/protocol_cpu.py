"""What the job protocol costs: CPU per job of the watcher, the workers and nats-server, jobs per second, and the delay of a job at rest.

    python bench/protocol_cpu.py [--jobs 20000] [--workers 2] [--rounds 3]

Syncs do nothing, observations are 2 KB: all that is measured is the protocol.
"""

import argparse
import asyncio
import contextlib
import json
import random
import sys
import tempfile
import time
from pathlib import Path

import psutil
from protocol_truth import Truth

from metaloop.devkit.broker import Broker

_ROLES = Path(__file__).with_name("protocol_roles.py")


async def main_async(args: argparse.Namespace) -> None:
    """Run all rounds, and print what they cost."""
    truth = Truth(0, lease_seconds=5.0)
    with tempfile.TemporaryDirectory() as folder:
        async with Broker.start(Path(folder)) as broker, truth.serving():
            common = ["--nats", broker.url, "--truth", str(truth.port), "--idle", "--hook", "0"]
            roles = ["watcher"] + ["worker"] * args.workers
            processes = [
                await asyncio.create_subprocess_exec(sys.executable, str(_ROLES), role, *common, stdout=asyncio.subprocess.PIPE)
                for role in roles
            ]
            try:
                await truth.watching.wait()
                async with asyncio.timeout(300):
                    await measure(args, truth, broker, processes)
            finally:
                for process in processes:
                    process.kill()
                    await process.wait()


async def measure(args: argparse.Namespace, truth: Truth, broker: Broker, processes: list[asyncio.subprocess.Process]) -> None:
    """Bursts of jobs, then single ones."""
    watcher, workers = processes[0], processes[1:]
    pids = [watcher.pid, *(worker.pid for worker in workers), broker.pid]
    await burst(truth, watcher, jobs=2000)
    for _ in range(args.rounds):
        before, began = [_cpu_seconds(pid) for pid in pids], time.monotonic()
        ended = await burst(truth, watcher, jobs=args.jobs)
        spent = [_cpu_seconds(pid) - was for pid, was in zip(pids, before, strict=True)]
        micros = [1e6 * each / args.jobs for each in (spent[0], sum(spent[1:-1]), spent[-1])]
        rate = args.jobs / (ended - began)
        print(f"{rate:6.0f} jobs/s; CPU per job: watcher {micros[0]:.0f} us, workers {micros[1]:.0f} us, nats-server {micros[2]:.0f} us")
    for _ in range(400 * len(workers)):
        truth.tell_watchers({"type": "burst", "count": 1})
        await asyncio.sleep(random.uniform(0.005, 0.015))
    for worker in workers:
        print("mark to sync at rest, the last hundred:", await last_line(worker))


def _cpu_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


async def burst(truth: Truth, watcher: asyncio.subprocess.Process, *, jobs: int) -> float:
    """When so many marked keys were finished."""
    done = (await counts(truth, watcher))["finished"] + jobs
    truth.tell_watchers({"type": "burst", "count": jobs})
    while True:
        await asyncio.sleep(0.05)
        now = await counts(truth, watcher)
        if now["finished"] >= done:
            return now["at"]


async def counts(truth: Truth, watcher: asyncio.subprocess.Process) -> dict[str, float]:
    """The watcher's counts."""
    assert watcher.stdout
    truth.tell_watchers({"type": "counts"})
    return json.loads(await watcher.stdout.readline())


async def last_line(worker: asyncio.subprocess.Process) -> str:
    """The last of what a worker said so far."""
    assert worker.stdout
    line = b""
    with contextlib.suppress(TimeoutError):
        while True:
            async with asyncio.timeout(0.5):
                line = await worker.stdout.readline()
    return line.decode().strip()


def main() -> None:
    """Read the arguments, and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    asyncio.run(main_async(parser.parse_args()))


if __name__ == "__main__":
    main()
