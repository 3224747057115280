"""A parent is marked while nothing else goes on: how soon a worker has the job, over a real broker."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from bench import bounds
from bench.figures import Figure, Raw
from bench.protocol.routing import NoRouting
from bench.run import Run
from metaloop.common.bus.links import Delivery, WorkerLink
from metaloop.common.bus.messages import ClaimRequest
from metaloop.common.bus.nats.connection import connected
from metaloop.common.bus.nats.stream import StreamSettings
from metaloop.common.bus.nats.watcher import NatsWatcherLink
from metaloop.common.bus.nats.worker import NatsWorkerLink
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import dumps
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.observation import CachedObservation, Granted
from metaloop.common.report import SyncReport
from metaloop.devkit.broker import Broker
from metaloop.devkit.workdir import run_folder
from metaloop.watcher.claims import Claims
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.dispatch import Dispatcher
from metaloop.watcher.workqueue import MarkClass, WorkQueue

_SHARD = "0"
_PAUSE_SECONDS = 0.005
_ECHO = "bench.echo"
_PARENTS = ResourceInfo(api_version="testbed.example.com/v1", resource="things", kind="Thing", namespaced=True, has_status=True)
_OBSERVATION = CachedObservation(controller=dumps({}), parent_resource=_PARENTS, parent=dumps({"metadata": {"name": "p"}}), children=[])


async def measure(run: Run) -> list[Figure]:
    """1,000 events, one after another; both ends are in this process, so that one clock times them.

    The unit is the round trip of a plain NATS request, made over the same broker between any two events.
    """
    count = run.of(1_000)
    with run_folder() as folder:
        async with Broker.start(folder) as broker, _echo(broker.url) as client, _ends(broker.url) as ends:
            timed = [(await _round_trip(client), await _wait(ends, number)) for number in range(count)]
    settled = timed[count // 10 :]
    round_trip = statistics.median(round_trip for round_trip, _ in settled)
    waits = sorted(wait for _, wait in settled)
    p50, p99 = statistics.median(waits), waits[int(0.99 * len(waits))]
    return [
        run.judge(bounds.DISPATCH, p50 / round_trip, raw=Raw(value=1_000 * p50, unit="ms")),
        Figure(name="  p99", value=1_000 * p99, unit="ms"),
        Figure(name="round trip of a NATS request, p50", value=1_000 * round_trip, unit="ms"),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ends:
    """The watcher's queue, which marks go into, and the worker that gets the jobs."""

    queue: WorkQueue
    worker: "_Worker"


@asynccontextmanager
async def _ends(url: str) -> AsyncIterator[_Ends]:
    """Dispatcher and worker at work, for as long as the block lasts."""
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(connected(url, name="watcher"))
        theirs = await stack.enter_async_context(connected(url, name="worker"))
        queue = WorkQueue(shard=_SHARD, cache=Caches(), is_behind=lambda *_: False, limits=Limits())
        claims = Claims(queue, observe=lambda _: _OBSERVATION, is_behind=lambda _: False, lease_seconds=5.0)
        link = NatsWatcherLink(ours, StreamSettings(), shard=_SHARD)
        dispatcher = Dispatcher(link, queue=queue, claims=claims, routing=NoRouting(), leads=lambda: True)
        worker = _Worker(NatsWorkerLink(theirs, StreamSettings()))
        await stack.enter_async_context(dispatcher.open())
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        running = [tasks.create_task(dispatcher.run()), tasks.create_task(worker.source.run())]
        yield _Ends(queue=queue, worker=worker)
        for task in running:
            task.cancel()


@asynccontextmanager
async def _echo(url: str) -> AsyncIterator[Client]:
    """A NATS client whose requests another one answers at once."""
    client, other = await nats.connect(url), await nats.connect(url)

    async def answer(message: Msg) -> None:
        await message.respond(message.data)

    await other.subscribe(_ECHO, cb=answer)
    await other.flush()
    try:
        yield client
    finally:
        await client.close()
        await other.close()


async def _round_trip(client: Client) -> float:
    """Seconds from a NATS request to its answer."""
    start = time.perf_counter()
    await client.request(_ECHO, b"x" * 200)
    return time.perf_counter() - start


async def _wait(ends: _Ends, number: int) -> float:
    """Seconds from a mark until a worker has its job."""
    key = JobKey(ControllerId("CompositeController", "bench"), ResourceId(_PARENTS.api_version, _PARENTS.resource), "n", f"p{number % 50}")
    ends.worker.done.clear()
    marked = time.perf_counter()
    ends.queue.mark(key, MarkClass.CHANGED, "it changed")
    await ends.worker.done.wait()
    await asyncio.sleep(_PAUSE_SECONDS)
    return ends.worker.arrived - marked


class _Worker:
    """A worker that claims, reports and acknowledges each job as soon as it has it."""

    def __init__(self, link: WorkerLink) -> None:
        self._link = link
        self.arrived = 0.0
        self.done = asyncio.Event()
        self.source = link.jobs(room=lambda: 16, on_job=self._take)

    async def _take(self, delivery: Delivery) -> None:
        self.arrived = time.perf_counter()
        key = delivery.job.key
        granted = await self._link.claim(_SHARD, ClaimRequest(key=key, worker="bench", free_slots=16))
        if isinstance(granted, Granted):
            await self._link.report(_SHARD, SyncReport(key=key, lease=granted.lease, result="done"))
            await delivery.finish(lease=granted.lease)
        self.done.set()
