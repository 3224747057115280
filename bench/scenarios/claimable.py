"""An event is taken while nothing else goes on: how soon a worker has the job in its hands. Queue, dispatcher and worker's end over a real broker."""

import asyncio
import statistics
import time

from bench import figures
from bench.figures import Figure
from bench.scenarios.scale import Scale
from metaloop.common.bus.channels import report
from metaloop.common.bus.claims import claim
from metaloop.common.bus.connect import Bus, connected
from metaloop.common.bus.messages import ClaimRequest, done_subject
from metaloop.common.bus.pull import Delivery, JobSource
from metaloop.common.bus.stream import JobStream, StreamSettings
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import dumps
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.observation import CachedObservation, Granted
from metaloop.common.report import SyncReport
from metaloop.devkit.broker import Broker
from metaloop.devkit.workdir import run_folder
from metaloop.watcher.claims import Claims
from metaloop.watcher.core.workqueue import Queue
from metaloop.watcher.dispatch import Dispatcher
from metaloop.watcher.workqueue import MarkClass, WorkQueue

_SHARD = "0"
_PAUSE_SECONDS = 0.005
_PARENTS = ResourceInfo(api_version="testbed.example.com/v1", resource="things", kind="Thing", namespaced=True, has_status=True)
_OBSERVATION = CachedObservation(controller=dumps({}), parent_resource=_PARENTS, parent=dumps({"metadata": {"name": "p"}}), children=[])


async def run(scale: Scale) -> list[Figure]:
    """1,000 events, one after another; both ends in this process, so that one clock tells."""
    with run_folder() as folder:
        async with (
            Broker.start(folder) as broker,
            connected(broker.url, name="watcher") as ours,
            connected(broker.url, name="worker") as theirs,
        ):
            queue = WorkQueue(Queue(shard=_SHARD, epoch="bench", seen=lambda _: True), clock=time.monotonic)
            claims = Claims(queue, observe=lambda _: _OBSERVATION, is_behind=lambda _: False, lease_seconds=5.0)
            dispatcher = Dispatcher(ours, JobStream(ours, StreamSettings()), shard=_SHARD, queue=queue, claims=claims)
            async with dispatcher.open(), asyncio.TaskGroup() as tasks:
                hands = Hands(theirs)
                running = [tasks.create_task(dispatcher.run()), tasks.create_task(hands.source.run())]
                waits = [await _wait(queue, hands, number) for number in range(scale.of(1_000))]
                for task in running:
                    task.cancel()
    settled = sorted(1_000 * wait for wait in waits[len(waits) // 10 :])
    return [
        scale.judge(figures.CLAIMABLE, statistics.median(settled)),
        Figure(name="  p99", value=settled[int(0.99 * len(settled))], unit="ms"),
    ]


async def _wait(queue: WorkQueue, hands: "Hands", number: int) -> float:
    """Seconds from a mark to its job in a worker's hands."""
    key = JobKey(ControllerId("CompositeController", "bench"), ResourceId(_PARENTS.api_version, _PARENTS.resource), "n", f"p{number % 50}")
    hands.done.clear()
    marked = time.perf_counter()
    queue.mark(key, MarkClass.CHANGED, "it changed")
    await hands.done.wait()
    await asyncio.sleep(_PAUSE_SECONDS)
    return hands.arrived - marked


class Hands:
    """A worker that claims, reports and acknowledges each job as soon as it has it."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.arrived = 0.0
        self.done = asyncio.Event()
        self.source = JobSource(bus, JobStream(bus, StreamSettings()), room=lambda: 16, on_job=self._take)

    async def _take(self, delivery: Delivery) -> None:
        self.arrived = time.perf_counter()
        key = delivery.job.key
        granted = await claim(self._bus, _SHARD, ClaimRequest(key=key, worker="bench", slots=16))
        if isinstance(granted, Granted):
            await report(self._bus, _SHARD, SyncReport(key=key, lease=granted.lease, result="done"))
            await delivery.finish(receipt_to=done_subject(_SHARD, granted.lease))
        self.done.set()
