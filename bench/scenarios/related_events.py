"""Many related objects, and many parents that each subscribe to a few by name: what it costs to find the parents."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from bench import bounds
from bench.figures import Figure
from bench.run import Run
from bench.system import NAMESPACE
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.related_query import InNamespace, RelatedQuery
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.watcher.core.cache import ResourceCache
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.core.record import Record, record_of
from metaloop.watcher.core.watch import Watch
from metaloop.watcher.routing import Routing

_CONTROLLER = ControllerId("CompositeController", "bench")
_THINGS = ResourceId("testbed.example.com/v1", "things")
_NAMES_PER_PARENT = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watcher:
    """The parts of a watcher that route an event of a related object."""

    cache: ResourceCache
    routing: Routing


class _Served:
    """What the API server serves."""

    resources: Mapping[ResourceId, ResourceInfo] = MappingProxyType({CONFIG_MAPS.id: CONFIG_MAPS})


async def measure(run: Run) -> list[Figure]:
    """10,000 ConfigMaps; 1,000 parents, each with a rule of ten names; every ConfigMap changes once."""
    objects, parents = run.of(10_000), run.of(1_000)
    watcher = _watcher(objects)
    subscribing = _subscribe(watcher, parents=parents, objects=objects)
    routing = _route_all(watcher, objects)
    return [
        run.judge_cpu(bounds.RELATED_EVENT_CPU, routing / objects),
        run.judge(bounds.RELATED_EVENT_PARENTS, watcher.routing.queue.waiting / parents),
        Figure(name="CPU of a parent's subscription, and of answering it", value=1_000 * subscribing / parents, unit="ms"),
    ]


def _watcher(objects: int) -> _Watcher:
    routing = Routing(shard="0", limits=Limits(), served=_Served(), changed=asyncio.Event())
    cache = routing.caches.open(Watch(CONFIG_MAPS), now=time.monotonic())
    cache.begin_list()
    for number in range(objects):
        cache.put(_record(number, version=1))
    cache.end_list("1")
    return _Watcher(cache=cache, routing=routing)


def _subscribe(watcher: _Watcher, *, parents: int, objects: int) -> float:
    """CPU seconds of subscribing all parents."""
    start = time.process_time()
    for number in range(parents):
        names = frozenset(f"c{(number * _NAMES_PER_PARENT + index) % objects}" for index in range(_NAMES_PER_PARENT))
        query = RelatedQuery(resource=CONFIG_MAPS.id, where=InNamespace(NAMESPACE), names=names)
        watcher.routing.subscriptions.subscribe(_key(number), "f", [query])
    return time.process_time() - start


def _route_all(watcher: _Watcher, objects: int) -> float:
    """CPU seconds of taking a change of each object, its JSON already parsed."""
    changed = [_record(number, version=2) for number in range(objects)]
    start = time.process_time()
    for record in changed:
        if change := watcher.cache.put(record):
            watcher.routing.router.take(change)
    return time.process_time() - start


def _record(number: int, *, version: int) -> Record:
    metadata: JsonObject = {"namespace": NAMESPACE, "name": f"c{number}", "uid": f"u{number}", "resourceVersion": str(version)}
    record = record_of({"metadata": {**metadata, "labels": {"app": f"app{number % 100}", "tier": "web"}}})
    if record is None:
        raise ValueError("the object has no metadata")
    return record


def _key(number: int) -> JobKey:
    return JobKey(_CONTROLLER, _THINGS, NAMESPACE, f"p{number}")
