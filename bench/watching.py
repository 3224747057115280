"""The watching half of a watcher as a process of its own, over `eventsource.py`: `python -m bench.watching KUBECONFIG OBJECTS EVENTS`.

What it measures of itself it prints as one line of JSON.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp
import psutil
import uvloop

from bench.rig import PARENTS
from metaloop.common.api.composite import parse_composite
from metaloop.common.json import dumps
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.login import login_of_kubeconfig
from metaloop.common.report import Write
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.testbed.manifests import child_rule, composite
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.watchset import instance_of
from metaloop.watcher.core.workqueue import Queue
from metaloop.watcher.memory import spare_the_cache
from metaloop.watcher.route import Router
from metaloop.watcher.subscriptions import RelatedSubscriptions
from metaloop.watcher.watch import WatchSettings
from metaloop.watcher.watches import Watches
from metaloop.watcher.workqueue import WorkQueue

_POLL_SECONDS = 0.005


class Half:
    """Watches, cache, router and queue, as the watcher ties them together, and nobody who takes jobs."""

    def __init__(self, kube: KubeClient) -> None:
        self.events = 0
        self.queue = WorkQueue(Queue(shard="0", epoch="bench", seen=self._has_seen), clock=time.monotonic)
        self.watches = Watches(kube, settings=WatchSettings(), on_change=self._take, on_news=lambda: None)
        self.router = Router(
            queue=self.queue, caches=self.watches.caches, subscriptions=RelatedSubscriptions(self.watches.caches, served=dict)
        )

    def start(self) -> None:
        """Route events to a controller of all parents."""
        manifest = composite("bench", parent=PARENTS, hook_url="http://127.0.0.1:1/", children=[child_rule()])
        instance = instance_of(parse_composite(manifest), {info.id: info for info in (PARENTS, CONFIG_MAPS)})
        if not isinstance(instance, Instance):
            raise TypeError(str(instance))
        self.router.start(instance, reason="bench")

    def _has_seen(self, write: Write) -> bool:
        return self.router.has_seen(write)

    def _take(self, change: Change) -> None:
        self.events += 1
        self.router.take(change)
        self.queue.progress(change.resource.id, *change.key)


async def main(kubeconfig: str, *, objects: int, events: int) -> dict[str, float]:
    """What was measured."""
    spare_the_cache()
    async with KubeClient.connect(kubeconfig) as kube, asyncio.TaskGroup() as group:
        half = Half(kube)
        half.watches.start(PARENTS, group)
        await _until(lambda: half.watches.is_synced(PARENTS.id))
        gc.collect()
        rss, cpu, began = psutil.Process().memory_info().rss, time.process_time(), time.monotonic()
        half.watches.start(CONFIG_MAPS, group)
        await _until(lambda: half.watches.is_synced(CONFIG_MAPS.id))
        listed, list_cpu = time.monotonic() - began, time.process_time() - cpu
        gc.collect()
        grown = psutil.Process().memory_info().rss - rss
        half.start()
        before, marks = half.events, half.queue.core.counts.marks
        async with aiohttp.ClientSession() as session:
            await session.get(f"{_server_of(kubeconfig)}/go")
        cpu, began = time.process_time(), time.monotonic()
        await _until(lambda: half.events - before >= events)
        took, event_cpu = time.monotonic() - began, time.process_time() - cpu
        marked = half.queue.core.counts.marks - marks
        for resource in (PARENTS, CONFIG_MAPS):
            half.watches.stop(resource.id)
    figures = {"listSeconds": listed, "listCpu": list_cpu, "bytesPerObject": grown / objects}
    return {**figures, "eventSeconds": took, "eventCpu": event_cpu, "marksPerEvent": marked / events}


def _server_of(kubeconfig: str) -> str:
    login = login_of_kubeconfig(Path(kubeconfig))
    return login.server_url if login else ""


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - what is measured should not have to tell us
        await asyncio.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    print(dumps(uvloop.run(main(sys.argv[1], objects=int(sys.argv[2]), events=int(sys.argv[3])))).decode())
