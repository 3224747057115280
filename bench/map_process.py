"""What the watcher does for one parent with very many inputs, as a process of its own.

    python -m bench.map_process COUNT

Caches, routing and queue are the watcher's; the objects come from nowhere and the syncs end at once. It prints what it
measured of itself as one line of JSON.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

import psutil
import uvloop

from bench.system import NAMESPACE, PARENTS
from metaloop.common.api import MAP_CONTROLLER_ANNOTATION, MAP_KEY
from metaloop.common.api.map import parse_map
from metaloop.common.json import JsonObject, dumps
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.report import SyncReport
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.testbed.manifests import config_map, map_controller, parent
from metaloop.watcher.core.cache import ResourceCache
from metaloop.watcher.core.entry import Lease
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.core.record import record_of
from metaloop.watcher.core.watch import Watch
from metaloop.watcher.core.watchset import instance_of
from metaloop.watcher.memory import spare_the_cache
from metaloop.watcher.routing import Routing

_PARENT = "p"
_UID = "00000000-0000-4000-8000-{:012d}"


class MappingHalf:
    """Caches, router and queue of a watcher that serves one MapController."""

    resources: Mapping[ResourceId, ResourceInfo] = MappingProxyType({info.id: info for info in (PARENTS, CONFIG_MAPS)})
    """What the API server serves."""

    def __init__(self) -> None:
        self.routing = Routing(shard="0", limits=Limits(), served=self, changed=asyncio.Event())
        self._parents, self._config_maps = (self._open(info) for info in (PARENTS, CONFIG_MAPS))
        self._version = 0

    def start(self) -> None:
        """Serve a controller that resyncs its inputs once an hour."""
        manifest = map_controller("bench", parent=PARENTS, hook_url="http://127.0.0.1:1/", resyncPeriodSeconds=3600)
        instance = instance_of(parse_map(manifest), self.resources)
        if not isinstance(instance, Instance):
            raise TypeError(str(instance))
        self.routing.router.start(instance, reason="bench")
        self.routing.queue.unblock(instance.controller.id)  # no other watcher had it

    def see_parent(self, **spec: object) -> None:
        """The parent is like this now. It maps what has the label `input: yes`."""
        labels: JsonObject = {"matchLabels": {"input": "yes"}}
        self._version += 1
        manifest = parent(PARENTS, _PARENT, namespace=NAMESPACE, spec={"selector": labels, **spec})  # type: ignore[dict-item]
        self._see(self._parents, manifest, uid="parent", generation=self._version)

    def lose_parent(self) -> None:
        """The parent is gone."""
        [record] = self._parents.objects.values()
        change = self._parents.remove(record)
        if change is not None:
            self.routing.router.take(change)

    def see_input(self, number: int) -> int:
        """There is an input with this number. Returns its bytes."""
        return self._see(self._config_maps, _input(number), uid=_UID.format(number))

    def see_output(self, number: int) -> int:
        """There is the output of an input with this number. Returns its bytes."""
        return self._see(self._config_maps, _output(number), uid=_UID.format(10**9 + number))

    def run_all(self) -> None:
        """Have everything that is marked synced, with nothing to do."""
        queue = self.routing.queue
        while (job := queue.take()) is not None:
            queue.stored(job.key)
            lease = queue.claim(job.key, worker="bench", slots=1)
            if not isinstance(lease, Lease):
                raise TypeError(str(lease))
            report = SyncReport(key=job.key, lease=lease.id, result="done")
            queue.report(report)
            self.routing.router.record_report(report)
            queue.receipt(lease.id)

    def _open(self, info: ResourceInfo) -> ResourceCache:
        cache = self.routing.caches.open(Watch(info), now=self.routing.queue.clock())
        cache.begin_list()
        cache.end_list("1")
        return cache

    def _see(self, cache: ResourceCache, manifest: JsonObject, *, uid: str, generation: int = 0) -> int:
        self._version += 1
        stored: JsonObject = {"uid": uid, "resourceVersion": str(self._version), "creationTimestamp": "2026-01-01T00:00:00Z"}
        if generation:
            stored["generation"] = generation
        record = record_of({**manifest, "metadata": {**unstructured.metadata(manifest), **stored}})
        if record is None:
            raise ValueError(manifest)
        change = cache.put(record)
        if change is not None:
            self.routing.router.take(change)
        return len(record.raw)


def _input(number: int) -> JsonObject:
    manifest = config_map(f"i{number}", labels={"input": "yes"}, data={"text": "first"})
    unstructured.metadata(manifest)["namespace"] = NAMESPACE
    return manifest


def _output(number: int) -> JsonObject:
    manifest, key = config_map(f"i{number}-out", data={"text": "first"}), _UID.format(number)
    owner: JsonObject = {"apiVersion": PARENTS.api_version, "kind": PARENTS.kind, "name": _PARENT, "uid": "parent", "controller": True}
    marks: JsonObject = {
        "namespace": NAMESPACE,
        "labels": {"of": _PARENT, MAP_KEY: key},
        "annotations": {MAP_CONTROLLER_ANNOTATION: "bench", MAP_KEY: key},
        "ownerReferences": [owner],
    }
    return {**manifest, "metadata": {**unstructured.metadata(manifest), **marks}}


class LoopTurns:
    """The longest turn of the event loop while a block runs."""

    def __init__(self) -> None:
        self.longest_seconds = 0.0
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._watch())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True
        await self._watching

    async def _watch(self) -> None:
        at = time.perf_counter()
        while not self._is_over:
            await asyncio.sleep(0)
            now = time.perf_counter()
            self.longest_seconds, at = max(self.longest_seconds, now - at), now


async def main(count: int) -> dict[str, float]:
    """The bytes kept for an input with its output, beside those of the objects; what marking all inputs takes."""
    spare_the_cache()
    half = MappingHalf()
    half.start()
    half.see_parent(text="first")
    before = _rss_bytes()
    size = sum(half.see_input(number) + half.see_output(number) for number in range(count))
    half.run_all()
    kept = (_rss_bytes() - before - size) / count
    changed = await _marking(half, count, text="second")
    selected = await _marking(half, count, selector={"matchExpressions": [{"key": "input", "operator": "Exists"}]})
    half.see_parent(text="third")  # all inputs are marked when it goes
    return {
        "keptBytes": kept,
        "objectBytes": size / count,
        "markSeconds": changed.seconds,
        "longestTurn": changed.longest_turn,
        "selectSeconds": selected.seconds,
        "longestSelectTurn": selected.longest_turn,
        "longestEndTurn": await _longest_turn_of_an_end(half),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Marking:
    """What it took to mark all inputs of a changed parent."""

    seconds: float
    longest_turn: float
    """Of the event loop meanwhile, in seconds."""


async def _marking(half: MappingHalf, count: int, **spec: object) -> Marking:
    """Change the parent, and wait until every input is marked."""
    counts = half.routing.queue.counts
    wanted = counts.marks + count + 1
    async with LoopTurns() as turns:
        began = time.perf_counter()
        half.see_parent(**spec)
        while counts.marks < wanted:  # noqa: ASYNC110 - to notify us would change what is measured
            await asyncio.sleep(0)
        seconds = time.perf_counter() - began
    half.run_all()
    return Marking(seconds=seconds, longest_turn=turns.longest_seconds)


async def _longest_turn_of_an_end(half: MappingHalf) -> float:
    """The longest turn of the event loop, in seconds, from the deletion of the parent until nothing is left of it."""
    async with LoopTurns() as turns:
        half.lose_parent()
        while any(half.routing.queue.entries()):  # noqa: ASYNC110 - to notify us would change what is measured
            await asyncio.sleep(0)
    return turns.longest_seconds


def _rss_bytes() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss


if __name__ == "__main__":
    print(dumps(uvloop.run(main(int(sys.argv[1])))).decode())
