"""The watching half of a watcher as a process of its own, beside `scripted_apiserver.py`.

    python -m bench.watch_process KUBECONFIG EVENTS

It prints what it measured of itself as one line of JSON.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import aiohttp
import psutil
import uvloop

from bench.system import PARENTS
from metaloop.common.api.composite import parse_composite
from metaloop.common.json import dumps
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.login import login_of_kubeconfig
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.testbed.manifests import child_rule, composite
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.core.watch import Watch, WatchId
from metaloop.watcher.core.watchset import instance_of
from metaloop.watcher.memory import spare_the_cache
from metaloop.watcher.reflector import WatchSettings
from metaloop.watcher.routing import Routing
from metaloop.watcher.watches import Watches

_POLL_SECONDS = 0.005


class WatchingHalf:
    """Watches, cache, router and queue, connected as in the watcher. Nobody takes the jobs."""

    resources: Mapping[ResourceId, ResourceInfo] = MappingProxyType({info.id: info for info in (PARENTS, CONFIG_MAPS)})
    """What the API server serves."""

    def __init__(self, kube: KubeClient) -> None:
        self.events = 0
        changed = asyncio.Event()
        self.routing = Routing(shard="0", limits=Limits(), served=self, changed=changed)
        self._watches = Watches(kube, self.routing, changed=changed, settings=WatchSettings())

    @property
    def marks(self) -> int:
        """How many marks the queue has got."""
        return self.routing.queue.counts.marks

    async def watch(self, resource: ResourceInfo, group: asyncio.TaskGroup) -> None:
        """Watch a resource; return once all of its objects are in the cache."""
        watch = Watch(resource)
        self._watches.start(watch, group, observer=self)
        await _until(lambda: self.routing.caches.is_synced(watch.id))

    def stop(self) -> None:
        """Watch nothing any more."""
        for resource in (PARENTS, CONFIG_MAPS):
            self._watches.stop(WatchId(resource.id))

    def take(self, change: Change) -> None:
        """Count a change, before it is routed."""
        del change
        self.events += 1

    def start_controller(self) -> None:
        """Route events to a controller of all parents."""
        manifest = composite("bench", parent=PARENTS, hook_url="http://127.0.0.1:1/", children=[child_rule()])
        instance = instance_of(parse_composite(manifest), self.resources)
        if not isinstance(instance, Instance):
            raise TypeError(str(instance))
        self.routing.router.start(instance, reason="bench")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What something took."""

    seconds: float
    cpu: float
    """CPU seconds of this process."""


async def main(kubeconfig: str, *, events: int) -> dict[str, float]:
    """Seconds and CPU seconds of the list and of the events, the bytes kept, and the marks of the events."""
    spare_the_cache()
    async with KubeClient.connect(kubeconfig) as kube, asyncio.TaskGroup() as group:
        half = WatchingHalf(kube)
        await half.watch(PARENTS, group)
        rss = _rss_bytes()
        listing = await _list(half, group)
        grown = _rss_bytes() - rss
        half.start_controller()
        marks = half.marks
        taking = await _take_events(half, _server_of(kubeconfig), events)
        half.stop()
    return {
        "listSeconds": listing.seconds,
        "listCpu": listing.cpu,
        "cacheBytes": grown,
        "eventSeconds": taking.seconds,
        "eventCpu": taking.cpu,
        "marks": half.marks - marks,
    }


async def _list(half: WatchingHalf, group: asyncio.TaskGroup) -> Spent:
    """Watch the children until all of them are in the cache."""
    cpu, start = time.process_time(), time.monotonic()
    await half.watch(CONFIG_MAPS, group)
    return Spent(seconds=time.monotonic() - start, cpu=time.process_time() - cpu)


async def _take_events(half: WatchingHalf, server: str, events: int) -> Spent:
    """Have the API server send its changes, until all are taken."""
    before = half.events
    async with aiohttp.ClientSession() as session:
        await session.get(f"{server}/go")
    cpu, start = time.process_time(), time.monotonic()
    await _until(lambda: half.events - before >= events)
    return Spent(seconds=time.monotonic() - start, cpu=time.process_time() - cpu)


def _rss_bytes() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss


def _server_of(kubeconfig: str) -> str:
    login = login_of_kubeconfig(Path(kubeconfig))
    return login.server_url if login else ""


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - to notify us would change what is measured
        await asyncio.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    print(dumps(uvloop.run(main(sys.argv[1], events=int(sys.argv[2])))).decode())
