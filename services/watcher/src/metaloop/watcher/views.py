"""Read-only views for people who ask why: the queue with each key's class, age and reason; the caches; the leases."""

from fastapi import FastAPI

from metaloop.common.json import JsonObject
from metaloop.common.telemetry import metrics
from metaloop.watcher.core.entry import Entry
from metaloop.watcher.route import Router
from metaloop.watcher.workqueue import WorkQueue


def add_views(app: FastAPI, queue: WorkQueue, router: Router) -> None:
    """Serve `/debug/queue`, `/debug/leases`, `/debug/cache` and `/debug/controllers`."""

    @app.get("/debug/queue")
    def show_queue() -> list[JsonObject]:
        return [_entry(entry) for entry in queue.core.entries()]

    @app.get("/debug/leases")
    def show_leases() -> list[JsonObject]:
        now = queue.clock()
        return [
            {
                "key": str(entry.key),
                "lease": entry.lease.id,
                "worker": entry.lease.worker,
                "expiresInSeconds": round(entry.lease.expires - now, 3),
            }
            for entry in queue.core.entries()
            if entry.lease is not None
        ]

    @app.get("/debug/cache")
    def show_cache() -> list[JsonObject]:
        return [
            {
                "resource": str(resource),
                "objects": len(cache.objects),
                "bytes": sum(len(record.raw) for record in cache.objects.values()),
                "synced": cache.is_synced,
                "resourceVersion": str(cache.version),
            }
            for resource, cache in router.caches.items()
        ]

    @app.get("/debug/controllers")
    def show_controllers() -> list[JsonObject]:
        return [
            {
                "controller": str(instance.controller.id),
                "generation": instance.controller.generation,
                "parent": str(instance.parent.id),
                "children": [str(child.id) for child in instance.children],
            }
            for instance in router.instances.values()
        ]


def _entry(entry: Entry) -> JsonObject:
    mark = entry.mark
    return {
        "key": str(entry.key),
        "stage": entry.stage.name.lower(),
        "class": mark.klass.name.lower() if mark else None,
        "reason": mark.reason if mark else None,
        "failures": entry.failures,
    }


def count_queue(queue: WorkQueue) -> None:
    """Have Prometheus see what the queue holds and what it counted."""
    core = queue.core
    metrics.observed("metaloop_queue_waiting", "Parents that wait for their turn.", lambda: core.waiting)
    metrics.observed("metaloop_queue_gated", "Parents that wait until the cache has seen their last sync's writes.", lambda: core.gated)
    metrics.observed("metaloop_queue_unclaimed", "Jobs in the stream that no worker took yet.", lambda: core.unclaimed)
    metrics.observed("metaloop_queue_leased", "Parents that a worker holds.", lambda: core.leased)
    for name in core.counts.__slots__:
        metrics.observed(
            f"metaloop_queue_{name}", f"How many {name.replace('_', ' ')} so far.", lambda name=name: getattr(core.counts, name)
        )
