"""The two ends of the job protocol as processes of their own, with a table of numbers in place of the cluster.

The table (`bench.protocol.table`) holds a desired and an applied number for each key. The real dispatcher, queue and
claims run in the `watcher` role, with a cache of these numbers. The real worker runs in the `worker` role, and its sync
applies the desired number.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
import uvloop

from bench.protocol.routing import NoRouting
from metaloop.common.bus.nats.connection import Connection, connected
from metaloop.common.bus.nats.stream import StreamSettings
from metaloop.common.bus.nats.watcher import NatsWatcherLink
from metaloop.common.bus.nats.worker import NatsWorkerLink
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import dumps
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.observation import CachedObservation, Gone, Granted
from metaloop.common.report import SyncReport, Write
from metaloop.devkit.pdeathsig import die_with_parent
from metaloop.reconciler.concurrency import Slot
from metaloop.reconciler.lease import LeaseGuard
from metaloop.reconciler.worker import Worker, WorkerSettings
from metaloop.watcher.claims import Claims
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.dispatch import Dispatcher
from metaloop.watcher.workqueue import MarkClass, WorkQueue

SHARD = "0/1"
PARENTS = ResourceInfo(api_version="bench.metaloop/v1", resource="parents", kind="Parent", namespaced=True)
CHILDREN = ResourceId("bench.metaloop/v1", "children")
CONTROLLER = ControllerId("CompositeController", "bench")
_CLUSTER = "5a2bd3ff-6c43-4a0e-9d58-2f0f3a1c9b77"
"""Claims name it, as in a real cluster."""
PADDING = "x" * 2000


def key_of(name: str) -> JobKey:
    """The key of the parent called `name`."""
    return JobKey(CONTROLLER, PARENTS.id, "default", name)


@dataclass(slots=True)
class Cache:
    """What the watcher has seen of the table."""

    rows: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])

    def has_seen(self, write: Write) -> bool:
        """Whether the row is no older than a write."""
        return self.rows.get(write.name, {}).get("rv", 0) >= int(write.resource_version)

    def is_silent(self, resource: ResourceId, *, since: float) -> bool:
        """Whether nothing was heard of the table: that never happens."""
        del resource, since
        return False

    def observe(self, key: JobKey) -> CachedObservation | Gone:
        """The row of a key as an observation."""
        row = self.rows.get(key.name)
        if row is None:
            return Gone(reason="no such parent")
        parent = dumps({"name": key.name, "padding": PADDING, **row})
        return CachedObservation(controller=b"{}", parent_resource=PARENTS, parent=parent, children=())


class TableWatch:
    """Keeps the cache equal to the table; each event marks its parent, and shows the queue which writes were seen."""

    def __init__(self, cache: Cache, queue: WorkQueue) -> None:
        self._cache = cache
        self._queue = queue
        self.is_listed = asyncio.Event()

    async def run(self, port: int) -> None:
        """List and then watch the table until the connection ends."""
        reader, _ = await _dial(port, {"role": "watcher"})
        while line := await reader.readline():
            self._take(line)
        raise ConnectionError("the table closed the connection")

    def _take(self, line: bytes) -> None:
        event = json.loads(line)
        match event["type"]:
            case "row":
                self._take_row(event["name"], event["row"], MarkClass[event.get("class", "CHANGED")])
            case "burst":
                self._mark_all(event["count"])
            case "listed":
                self.is_listed.set()
            case "counts":
                counts = self._queue.counts
                values = {name: getattr(counts, name) for name in counts.__slots__}
                print(json.dumps({"at": time.monotonic(), **values}), flush=True)

    def _take_row(self, name: str, row: dict[str, int], mark: MarkClass) -> None:
        self._cache.rows[name] = row
        self._queue.mark(key_of(name), mark, "changed")
        self._queue.progress(CHILDREN, "default", name)

    def _mark_all(self, count: int) -> None:
        now = time.monotonic_ns()
        for number in range(count):
            self._cache.rows.setdefault(f"p{number}", {})["marked"] = now
            self._queue.mark(key_of(f"p{number}"), MarkClass.CHANGED, "burst")


async def watcher(args: argparse.Namespace, connection: Connection) -> None:
    """The watcher's process."""
    cache = Cache()
    queue = WorkQueue(shard=SHARD, cache=cache, is_behind=lambda *_: False, limits=Limits(lease_seconds=args.ack_wait))
    claims = Claims(queue, observe=cache.observe, is_behind=lambda _: False, lease_seconds=args.ack_wait)
    link = NatsWatcherLink(connection, StreamSettings(ack_wait_seconds=args.ack_wait, cluster=_CLUSTER), shard=SHARD)
    dispatcher = Dispatcher(link, queue=queue, claims=claims, routing=NoRouting(), leads=lambda: True)
    async with dispatcher.open(), asyncio.TaskGroup() as tasks:
        watch = TableWatch(cache, queue)
        tasks.create_task(watch.run(args.table))
        await watch.is_listed.wait()
        tasks.create_task(dispatcher.run())


class TableClient:
    """The worker's connection to the table, which is told of each begin, write and end, and checks them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._answers: dict[int, asyncio.Future[int]] = {}
        self._calls = 0

    async def call(self, message: dict[str, object]) -> int:
        """The table's answer to a message: the row's new version for a write."""
        self._calls += 1
        answer = self._answers[self._calls] = asyncio.get_running_loop().create_future()
        self._writer.write(json.dumps({**message, "id": self._calls}).encode() + b"\n")
        return await answer

    async def read(self) -> None:
        """Take answers until the connection ends."""
        while line := await self._reader.readline():
            answer = json.loads(line)
            self._answers.pop(answer["id"]).set_result(answer["rv"])
        raise ConnectionError("the table closed the connection")


def applying(table: TableClient, *, hook_seconds: float) -> Callable[[Granted, Slot, LeaseGuard], object]:
    """A sync that applies the desired number after a random wait for the hook."""

    async def sync(granted: Granted, slot: Slot, guard: LeaseGuard) -> SyncReport:
        row = granted.observation.parent
        name = str(row["name"])
        await table.call({"type": "begin", "name": name, "lease": granted.lease, "rv": row["rv"]})
        writes, wrote = list[Write](), 0
        try:
            async with slot.waiting():
                # Mostly short, sometimes longer than a lease.
                await asyncio.sleep(random.expovariate(1 / hook_seconds) if random.random() < 0.995 else random.uniform(1, 8))
            if row["applied"] != row["desired"]:
                guard.check()
                wrote = await table.call({"type": "write", "name": name, "lease": granted.lease, "applied": row["desired"]})
                writes.append(Write(resource=CHILDREN, namespace="default", name=name, uid="u", resource_version=str(wrote)))
        finally:
            await table.call({"type": "end", "name": name, "lease": granted.lease, "wrote": wrote})
        failed = random.random() < 0.05
        return SyncReport(key=key_of(name), lease=granted.lease, result="retry" if failed else "done", writes=writes)

    return sync


def idling(*, hook_seconds: float) -> Callable[[Granted, Slot, LeaseGuard], object]:
    """A sync that does nothing, and prints how old the marks were."""
    ages: list[float] = []

    async def sync(granted: Granted, slot: Slot, _: LeaseGuard) -> SyncReport:
        row = granted.observation.parent
        ages.append((time.monotonic_ns() - int(str(row["marked"]))) / 1e6)
        if len(ages) == 100:
            ages.sort()
            print(json.dumps({"p50_ms": ages[50], "p99_ms": ages[98]}), flush=True)
            ages.clear()
        if hook_seconds:
            async with slot.waiting():
                await asyncio.sleep(hook_seconds)
        return SyncReport(key=key_of(str(row["name"])), lease=granted.lease, result="done")

    return sync


async def worker(args: argparse.Namespace, connection: Connection) -> None:
    """The worker's process."""
    reader, writer = await _dial(args.table, {"role": "worker", "pid": os.getpid()})
    table = TableClient(reader, writer)
    sync = idling(hook_seconds=args.hook) if args.idle else applying(table, hook_seconds=args.hook)
    settings = WorkerSettings(active_jobs=args.active, waiting_jobs=args.waiting, ack_wait_seconds=args.ack_wait)
    link = NatsWorkerLink(connection, StreamSettings(ack_wait_seconds=args.ack_wait, cluster=_CLUSTER))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(table.read())
        tasks.create_task(Worker(link, sync=sync, settings=settings).run())  # type: ignore[arg-type]


async def _dial(port: int, hello: dict[str, object]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    writer.write(json.dumps(hello).encode() + b"\n")
    return reader, writer


async def run(args: argparse.Namespace) -> None:
    """The role that was asked for, connected."""
    async with connected(args.nats, name=args.role) as connection:
        await {"watcher": watcher, "worker": worker}[args.role](args, connection)


def main() -> None:
    """Read the arguments, and run until killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=["watcher", "worker"])
    parser.add_argument("--nats", required=True)
    parser.add_argument("--table", type=int, required=True)
    parser.add_argument("--ack-wait", type=float, default=5.0)
    parser.add_argument("--hook", type=float, default=0.01)
    parser.add_argument("--active", type=int, default=16)
    parser.add_argument("--waiting", type=int, default=256)
    parser.add_argument("--idle", action="store_true")
    die_with_parent(os.getppid())
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(30))
    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
