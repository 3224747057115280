"""The metrics that the watcher exports of its queue, its caches and its leadership."""

import pytest

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.telemetry import metrics
from metaloop.watcher.core.entry import Lease
from metaloop.watcher.metrics import export_caches, export_leadership, export_queue
from metaloop.watcher.workqueue import MarkClass

from .objects import CONFIGMAPS, HELLOS, record
from .routing_in_hand import RoutingInHand

CONTROLLER = ControllerId("CompositeController", "things")
QUEUE = {"name": str(CONTROLLER), "controller": str(CONTROLLER)}


def key(name: str = "p") -> JobKey:
    return JobKey(CONTROLLER, HELLOS.id, "default", name)


@pytest.fixture
def routing() -> RoutingInHand:
    """A watcher's queue and caches, exported."""
    routing = RoutingInHand(HELLOS, CONFIGMAPS)
    export_queue(routing.queue)
    export_caches(routing.caches, clock=routing.clock)
    return routing


def value(metric: str, **labels: str) -> float | None:
    """An exported sample; None where there is none."""
    return metrics.registry.get_sample_value(metric, labels)


def leased(routing: RoutingInHand) -> Lease:
    """A lease of the key."""
    routing.queue.mark(key(), MarkClass.CHANGED, "it changed")
    reply = routing.queue.claim(key(), worker="worker", slots=1)
    assert isinstance(reply, Lease)
    return reply


def test_depth_is_exported_by_class(routing: RoutingInHand):
    routing.queue.mark(key("a"), MarkClass.NEW, "new")
    routing.queue.mark(key("b"), MarkClass.RESYNC, "resync")
    routing.queue.mark(key("c"), MarkClass.RESYNC, "resync")

    depths = {klass: value("workqueue_depth", **QUEUE, priority=klass) for klass in ("new", "changed", "resync")}

    assert depths == {"new": 1, "changed": 0, "resync": 2}


def test_age_of_the_oldest_waiting_key_is_exported(routing: RoutingInHand):
    routing.queue.mark(key("a"), MarkClass.RESYNC, "resync")
    routing.clock.now += 5.0
    routing.queue.mark(key("b"), MarkClass.CHANGED, "changed")
    routing.clock.now += 2.0

    assert value("metaloop_queue_oldest_seconds", **QUEUE) == 7.0


def test_held_keys_are_unfinished_work(routing: RoutingInHand):
    leased(routing)
    routing.clock.now += 3.0

    assert value("workqueue_unfinished_work_seconds", **QUEUE) == 3.0
    assert value("workqueue_longest_running_processor_seconds", **QUEUE) == 3.0


def test_nothing_is_unfinished_where_nobody_holds_a_key(routing: RoutingInHand):
    routing.queue.mark(key(), MarkClass.CHANGED, "it changed")

    assert value("workqueue_unfinished_work_seconds", **QUEUE) == 0.0


def test_adds_and_waits_are_exported(routing: RoutingInHand):
    leased(routing)

    assert value("workqueue_adds_total", **QUEUE) == 1
    assert value("workqueue_queue_duration_seconds_count", **QUEUE) == 1
    assert value("workqueue_work_duration_seconds_count", **QUEUE) == 0
    assert value("workqueue_retries_total", **QUEUE) == 0


def test_removed_controller_has_no_series_of_the_queue(routing: RoutingInHand):
    routing.queue.mark(key(), MarkClass.CHANGED, "it changed")

    routing.queue.forget_controller(CONTROLLER)

    exposed = metrics.exposition().decode()
    assert not [line for line in exposed.splitlines() if line.startswith("workqueue_")]


def test_what_the_queue_counted_is_exported_as_counters(routing: RoutingInHand):
    leased(routing)

    exposed = metrics.exposition().decode().splitlines()

    assert "# TYPE metaloop_queue_marks_total counter" in exposed
    assert value("metaloop_queue_marks_total") == 1
    assert value("metaloop_queue_claims_total") == 1


def test_objects_and_bytes_are_exported_by_resource(routing: RoutingInHand):
    one = record("a")
    routing.see(CONFIGMAPS, one)

    assert value("metaloop_cache_objects", resource=str(CONFIGMAPS.id)) == 1
    assert value("metaloop_cache_bytes", resource=str(CONFIGMAPS.id)) == len(one.raw)
    assert value("metaloop_cache_objects", resource=str(HELLOS.id)) == 0


def test_resource_that_is_no_longer_watched_has_no_series(routing: RoutingInHand):
    for cache in [*routing.caches]:
        routing.caches.close(cache.watch.id)

    assert value("metaloop_cache_objects", resource=str(CONFIGMAPS.id)) is None


def test_silence_of_a_watch_is_exported(routing: RoutingInHand):
    routing.clock.now += 70.0

    assert value("metaloop_watch_silent_seconds", resource=str(HELLOS.id)) == 70.0


@pytest.mark.parametrize(("leads", "shown"), [(True, 1.0), (False, 0.0)])
def test_leader_is_told_from_a_standby(leads: bool, shown: float):
    export_leadership("metaloop-watcher-0", lambda: leads)

    assert value("leader_election_master_status", name="metaloop-watcher-0") == shown
