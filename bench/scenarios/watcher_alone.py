"""A watcher without reconcilers: how soon it has marked all parents after a restart, and what it costs at rest."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import aiohttp

from bench import bounds
from bench.figures import Figure, Raw
from bench.load import in_parallel
from bench.run import Run
from bench.system import NAMESPACE, PARENTS, System
from bench.usage import API_SERVER
from metaloop.common.bus.nats.connection import connected
from metaloop.common.bus.nats.subjects import Subjects
from metaloop.common.json import JsonObject
from metaloop.devkit.testbed.cluster import COMPOSITES, CRDS
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import child_rule, composite, crd, parent, parent_resource

_POLL_SECONDS = 0.02
_WATCHED_SECONDS = 30.0
_SETTLE_SECONDS = 10.0
_WAITING, _OFFERED, _RESOURCES = "metaloop_queue_waiting", "metaloop_queue_unclaimed", "metaloop_cache_resources"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """What was seen of a watcher's start, in seconds from its beginning."""

    first_job: float
    all_marked: float


async def measure_restart(run: Run) -> list[Figure]:
    """20,000 parents, and no worker that takes a job: the watcher is killed and started again."""
    count = run.of(20_000)
    async with System.start(run, reconcilers=0) as system:
        await in_parallel(system.cluster.create(PARENTS, _parent(index), namespace=NAMESPACE) for index in range(count))
        await system.create_controller()
        await _all_marked(system, count)
        await system.stack.watcher.kill()
        await system.platform.broker.wipe()
        started = await _start(system, count)
        cpu, rss = system.stack.watcher.cpu_seconds(), system.stack.watcher.rss_bytes()
    return [
        run.judge_seconds(bounds.WATCHER_RESTART, started.all_marked),
        Figure(name="  until the first job", value=started.first_job, unit="s"),
        Figure(name="  CPU of it", value=cpu, unit="s"),
        Figure(name="  resident memory then", value=rss / 1e6, unit="MB"),
    ]


async def measure_idle(run: Run) -> list[Figure]:
    """One controller with 99 kinds of children, and nothing happens."""
    kinds = [parent_resource(f"kind{index}s") for index in range(run.of(99))]
    async with System.start(run, reconcilers=0) as system:
        await in_parallel((system.cluster.create(CRDS, crd(kind)) for kind in kinds), clients=4)
        for kind in kinds:
            await install_parent(system.cluster, kind)
        children: list[JsonObject] = [child_rule(kind.id) for kind in kinds]
        controller = composite("bench", parent=PARENTS, hook_url=system.hook.sync_url, children=children)
        await system.cluster.create(COMPOSITES, controller)
        await _until_metrics(system, lambda metrics: metrics.get(_RESOURCES, 0) >= len(kinds))
        await asyncio.sleep(_SETTLE_SECONDS)
        before = system.usage()
        await asyncio.sleep(_WATCHED_SECONDS)
        used = system.usage().since(before).cpu_seconds
    cpu = Raw(value=100 * used["watcher"] / _WATCHED_SECONDS, unit="% of a core")
    return [run.judge(bounds.IDLE_CPU, used["watcher"] / used[API_SERVER], raw=cpu)]


async def _start(system: System, count: int) -> _Start:
    """Start the watcher, and see from the bus and its metrics how far it is."""
    began = time.monotonic()
    heard = asyncio.Event()

    async def hear(_: object) -> None:
        heard.set()

    async with connected(system.platform.broker.url, name="bench") as connection, asyncio.TaskGroup() as tasks:
        starting = tasks.create_task(system.stack.watcher.start())
        async with connection.listening(Subjects().all_jobs, hear):
            await heard.wait()
            first_job = time.monotonic() - began
            await starting
            await _all_marked(system, count)
    return _Start(first_job=first_job, all_marked=time.monotonic() - began)


def _parent(index: int) -> JsonObject:
    return parent(PARENTS, f"p{index}", namespace=NAMESPACE, spec={"children": 3, "text": "first"})


async def _all_marked(system: System, count: int) -> None:
    """Wait until so many parents wait in the queue or are offered to workers."""
    await _until_metrics(system, lambda metrics: metrics.get(_WAITING, 0) + metrics.get(_OFFERED, 0) >= count)


async def _until_metrics(system: System, holds: Callable[[Mapping[str, float]], bool]) -> None:
    """Wait until something holds for the watcher's metrics."""
    async with aiohttp.ClientSession() as session:
        while not holds(await _metrics(session, system.stack.watcher.metrics_url)):  # noqa: ASYNC110 - metrics can only be polled
            await asyncio.sleep(_POLL_SECONDS)


async def _metrics(session: aiohttp.ClientSession, url: str) -> Mapping[str, float]:
    """The metrics without labels, by name; none while nobody answers."""
    try:
        async with session.get(url) as response:
            text = await response.text()
    except aiohttp.ClientError:
        return {}
    lines = (line.split(" ", 1) for line in text.splitlines() if line and not line.startswith("#") and "{" not in line)
    return {name: float(value) for name, value in lines}
