"""Exports the numbers of the queue, the caches and the leadership, each read when Prometheus scrapes it.

The queue has the names and labels of client-go's workqueue, so that the dashboards of other controllers show it.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final

from metaloop.common.distribution import Distribution
from metaloop.common.job import ControllerId
from metaloop.common.telemetry import metrics
from metaloop.common.telemetry.metrics import Family, Kind, LabelValues, Numbers
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.entry import Entry
from metaloop.watcher.core.fair_queue import Flow, MarkClass
from metaloop.watcher.core.limits import Counts
from metaloop.watcher.workqueue import Clock, WorkQueue

_QUEUE_LABELS: Final = ("name", "controller")
"""Both are the controller: dashboards ask for the one or the other."""


def export_queue(queue: WorkQueue) -> None:
    """Export what waits in the queue, what is in flight, and what it counted in this leader term."""
    _export_workqueue(queue)
    metrics.observed("metaloop_queue_waiting", "Keys that wait for their turn.", lambda: queue.waiting)
    metrics.observed("metaloop_queue_gated", "Keys that wait until the cache has seen the writes of their last sync.", lambda: queue.gated)
    metrics.observed("metaloop_queue_unclaimed", "Jobs in the stream that no worker has claimed.", lambda: queue.unclaimed)
    metrics.observed("metaloop_queue_leased", "Keys that a worker holds.", lambda: queue.leased)
    metrics.observed("metaloop_queue_workers", "Workers that have said something lately.", lambda: queue.workers)
    for count in fields(Counts):
        family = Family(name=f"metaloop_queue_{count.name}_total", kind="counter", documentation=count.metadata["documentation"])
        metrics.export(family, lambda name=count.name: {(): getattr(queue.counts, name)})


def export_caches(caches: Caches, *, clock: Clock) -> None:
    """Export what is cached of each resource, and how long by `clock` its watch has been silent."""
    metrics.observed("metaloop_cache_resources", "Resources that are watched.", lambda: len(caches))
    _export_of_caches("objects", "Objects in the cache.", lambda: {(str(cache.watch.id),): len(cache.objects) for cache in caches})
    _export_of_caches("bytes", "Length of the cached objects as JSON.", lambda: {(str(cache.watch.id),): cache.bytes for cache in caches})
    family = Family(
        name="metaloop_watch_silent_seconds",
        kind="gauge",
        documentation="Since when a watch has heard nothing, not even a bookmark.",
        labels=("resource",),
    )

    def silences() -> Numbers:
        now = clock()
        return {(str(cache.watch.id),): max(0.0, now - cache.heard_at) for cache in caches}

    metrics.export(family, silences)


def export_leadership(lease: str, leads: Callable[[], bool]) -> None:
    """Export whether this watcher leads, by the name of the Lease."""
    documentation = "Whether this process is the leader; 0 for a standby."
    metrics.observed_by("leader_election_master_status", documentation, "name", lambda: {lease: float(leads())})


@dataclass(frozen=True, slots=True)
class _OfFlow:
    """One of the metrics of a workqueue: how it is read of one controller's keys."""

    name: str
    kind: Kind
    documentation: str
    read: Callable[[Flow[Entry]], float | Distribution]


_OF_FLOWS: Final = (
    _OfFlow("adds", "counter", "Keys that were marked and were not marked already.", lambda flow: flow.numbers.adds),
    _OfFlow("retries", "counter", "Syncs after which a retry was planned.", lambda flow: flow.numbers.retries),
    _OfFlow(
        "queue_duration_seconds",
        "histogram",
        "How long marked keys waited until a worker claimed them.",
        lambda flow: flow.numbers.waited,
    ),
    _OfFlow(
        "work_duration_seconds",
        "histogram",
        "How long workers held keys, from the claim until their jobs were out of the stream.",
        lambda flow: flow.numbers.worked,
    ),
)


def _export_workqueue(queue: WorkQueue) -> None:
    for each in _OF_FLOWS:
        name = f"workqueue_{each.name}{'_total' if each.kind == 'counter' else ''}"
        family = Family(name=name, kind=each.kind, documentation=each.documentation, labels=_QUEUE_LABELS)
        metrics.export(family, lambda read=each.read: {_labels(controller): read(flow) for controller, flow in queue.flows().items()})
    depth = Family(
        name="workqueue_depth", kind="gauge", documentation="Keys that wait for their turn, by class.", labels=(*_QUEUE_LABELS, "priority")
    )
    metrics.export(depth, lambda: _depths(queue))
    _export_gauge("workqueue_unfinished_work_seconds", "How long workers have held keys, summed up.", lambda: _held(queue, sum))
    _export_gauge("workqueue_longest_running_processor_seconds", "How long the oldest lease has lasted.", lambda: _held(queue, max))
    _export_gauge("metaloop_queue_oldest_seconds", "How long the oldest waiting key has waited.", lambda: _ages(queue))


def _export_gauge(name: str, documentation: str, read: Callable[[], Numbers]) -> None:
    metrics.export(Family(name=name, kind="gauge", documentation=documentation, labels=_QUEUE_LABELS), read)


def _depths(queue: WorkQueue) -> Numbers:
    return {
        (*_labels(controller), klass.name.lower()): len(flow.classes[klass].items)
        for controller, flow in queue.flows().items()
        for klass in MarkClass
    }


def _ages(queue: WorkQueue) -> Numbers:
    now = queue.clock()
    return {_labels(controller): flow.longest_wait(now) for controller, flow in queue.flows().items()}


def _held(queue: WorkQueue, combined: Callable[[list[float]], float]) -> Numbers:
    """The ages of each controller's leases, combined; 0 where nobody holds one of its keys."""
    now = queue.clock()
    ages: dict[ControllerId, list[float]] = {controller: [0.0] for controller in queue.flows()}
    for entry in queue.leases():
        if entry.lease is not None:
            ages.setdefault(entry.key.controller, []).append(now - entry.lease.began)
    return {_labels(controller): combined(each) for controller, each in ages.items()}


def _export_of_caches(what: str, documentation: str, read: Callable[[], Numbers]) -> None:
    metrics.export(Family(name=f"metaloop_cache_{what}", kind="gauge", documentation=documentation, labels=("resource",)), read)


def _labels(controller: ControllerId) -> LabelValues:
    return str(controller), str(controller)
