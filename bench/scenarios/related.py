"""Very many related objects, and very many parents subscribed to a few of them by name: what it costs to find the subscribers of a change."""

import time

from bench import figures
from bench.figures import Figure
from bench.rig import NAMESPACE
from bench.scenarios.scale import Scale
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.related_query import InNamespace, RelatedQuery
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.watcher.cache import ResourceCache
from metaloop.watcher.core.record import Record, record_of
from metaloop.watcher.core.workqueue import Queue
from metaloop.watcher.route import Router
from metaloop.watcher.subscriptions import RelatedSubscriptions
from metaloop.watcher.workqueue import WorkQueue

_CONTROLLER = ControllerId("CompositeController", "bench")
_THINGS = ResourceId("testbed.example.com/v1", "things")
_NAMES_PER_PARENT = 10


async def run(scale: Scale) -> list[Figure]:
    """10,000 ConfigMaps; 1,000 parents, each with a rule of ten names; every ConfigMap changes once."""
    objects, parents = scale.of(10_000), scale.of(1_000)
    caches: dict[ResourceId, ResourceCache] = {CONFIG_MAPS.id: _cache(objects)}
    served: dict[ResourceId, ResourceInfo] = {CONFIG_MAPS.id: CONFIG_MAPS}
    subscriptions = RelatedSubscriptions(caches, served=lambda: served)
    queue = WorkQueue(Queue(shard="0", epoch="bench", seen=lambda _: True), clock=time.monotonic)
    router = Router(queue=queue, caches=caches, subscriptions=subscriptions)
    began = time.process_time()
    for number in range(parents):
        names = frozenset(f"c{(number * _NAMES_PER_PARENT + index) % objects}" for index in range(_NAMES_PER_PARENT))
        subscriptions.subscribe(_key(number), "f", [RelatedQuery(resource=CONFIG_MAPS.id, where=InNamespace(NAMESPACE), names=names)])
    told = time.process_time() - began
    seconds = _route_all(router, caches[CONFIG_MAPS.id], objects)
    return [
        scale.judge(figures.RELATED_EVENT, 1_000 * seconds / objects),
        Figure(name="parents marked by them", value=queue.core.waiting),
        Figure(name="CPU of telling a parent's queries, and of answering", value=1_000 * told / parents, unit="ms"),
    ]


def _route_all(router: Router, cache: ResourceCache, objects: int) -> float:
    """CPU seconds of taking a change of each object, all but the reading of its JSON."""
    changed = [_record(number, version=2) for number in range(objects)]
    began = time.process_time()
    for record in changed:
        if change := cache.put(record):
            router.take(change)
    return time.process_time() - began


def _cache(objects: int) -> ResourceCache:
    cache = ResourceCache(CONFIG_MAPS)
    cache.begin_list()
    for number in range(objects):
        cache.put(_record(number, version=1))
    cache.end_list("1")
    return cache


def _record(number: int, *, version: int) -> Record:
    metadata: JsonObject = {"namespace": NAMESPACE, "name": f"c{number}", "uid": f"u{number}", "resourceVersion": str(version)}
    record = record_of({"metadata": {**metadata, "labels": {"app": f"app{number % 100}", "tier": "web"}}})
    if record is None:
        raise ValueError("a record of no object")
    return record


def _key(number: int) -> JobKey:
    return JobKey(_CONTROLLER, _THINGS, NAMESPACE, f"p{number}")
