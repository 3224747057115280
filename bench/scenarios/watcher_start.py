"""A watcher starts where very much is there already: when the first job goes out, and when all parents are marked; and what it costs at rest."""

import asyncio
import time

import aiohttp

from bench import figures
from bench.figures import Figure
from bench.population import in_parallel
from bench.rig import NAMESPACE, PARENTS, Rig
from bench.scenarios.scale import Scale
from metaloop.common.bus.connect import connected
from metaloop.common.json import JsonObject
from metaloop.devkit.testbed.cluster import COMPOSITES, CRDS
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import child_rule, composite, crd, parent, parent_resource

_POLL_SECONDS = 0.02
_REST_SECONDS = 30.0
_SETTLE_SECONDS = 10.0


async def run_restart(scale: Scale) -> list[Figure]:
    """20,000 parents, and no worker to take a job: the watcher is killed and started again."""
    count = scale.of(20_000)
    async with Rig.start(scale.assets, profiles=scale.profiles, reconcilers=0) as rig:
        await in_parallel(rig.cluster.create(PARENTS, _parent(index), namespace=NAMESPACE) for index in range(count))
        await rig.controller()
        watcher = rig.stack.watcher
        await _marked(watcher.metrics_url, count)
        await watcher.kill()
        await rig.ground.broker.wipe()
        began = time.monotonic()
        async with connected(rig.ground.broker.url, name="bench") as bus, asyncio.TaskGroup() as tasks:
            starting = tasks.create_task(watcher.start())
            heard = asyncio.Event()

            async def hear(_: object) -> None:
                heard.set()

            async with bus.listening("metaloop.job.>", hear):
                await heard.wait()
                first = time.monotonic() - began
                await starting
                await _marked(watcher.metrics_url, count)
                marked = time.monotonic() - began
        cpu, rss = watcher.cpu_seconds(), watcher.rss_bytes()
    return [
        Figure(name="20,000 parents: from the watcher's start to its first job", value=first, unit="s"),
        Figure(name="  until all are marked", value=marked, unit="s"),
        Figure(name="  CPU of it", value=cpu, unit="s"),
        Figure(name="  resident memory then", value=rss / 1e6, unit="MB"),
    ]


async def run_hundred(scale: Scale) -> list[Figure]:
    """One controller with 99 kinds of children, and nothing that happens."""
    kinds = [parent_resource(f"kind{index}s") for index in range(scale.of(99))]
    async with Rig.start(scale.assets, profiles=scale.profiles, reconcilers=0) as rig:
        await in_parallel((rig.cluster.create(CRDS, crd(kind)) for kind in kinds), clients=4)
        for kind in kinds:
            await install_parent(rig.cluster, kind)
        children: list[JsonObject] = [child_rule(kind.id) for kind in kinds]
        await rig.cluster.create(COMPOSITES, composite("bench", parent=PARENTS, hook_url=rig.hook.sync_url, children=children))
        await _metric_reaches(rig.stack.watcher.metrics_url, "metaloop_cache_resources", len(kinds))
        await asyncio.sleep(_SETTLE_SECONDS)
        before = rig.stack.watcher.cpu_seconds()
        await asyncio.sleep(_REST_SECONDS)
        used = rig.stack.watcher.cpu_seconds() - before
    return [scale.judge(figures.IDLE_WATCHES, 100 * used / _REST_SECONDS)]


def _parent(index: int) -> JsonObject:
    return parent(PARENTS, f"p{index}", namespace=NAMESPACE, spec={"children": 3, "text": "first"})


async def _marked(metrics_url: str, count: int) -> None:
    """Nothing, once so many parents wait or are offered."""
    await _metric_reaches(metrics_url, "metaloop_queue_waiting", count, plus="metaloop_queue_unclaimed")


async def _metric_reaches(metrics_url: str, name: str, value: float, *, plus: str = "") -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(metrics_url) as response:
                    found = _metrics(await response.text())
            except aiohttp.ClientError:
                found = {}
            if found.get(name, 0.0) + found.get(plus, 0.0) >= value:
                return
            await asyncio.sleep(_POLL_SECONDS)


def _metrics(text: str) -> dict[str, float]:
    """Those without labels, by name."""
    lines = (line.split(" ", 1) for line in text.splitlines() if line and not line.startswith("#") and "{" not in line)
    return {name: float(value) for name, value in lines}
