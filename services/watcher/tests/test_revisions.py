"""Parents whose children roll: their revisions are watched, shown with them, and mark them."""

from dataclasses import replace

import pytest

from metaloop.common.api.composite import CompositeController
from metaloop.common.api.revision import REVISIONS
from metaloop.common.job import JobKey
from metaloop.common.json import loads
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import CachedObservation
from metaloop.common.testing.clock import FakeClock
from metaloop.watcher.cache import ResourceCache
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.watchset import Waiting, instance_of
from metaloop.watcher.core.workqueue import Queue
from metaloop.watcher.route import Router
from metaloop.watcher.subscriptions import RelatedSubscriptions
from metaloop.watcher.workqueue import WorkQueue

from .objects import CONFIGMAPS, HELLOS, controller, owned_by, record

WEB = {"selector": {"matchLabels": {"app": "web"}}}
OF_HELLOS = {"metacontroller.k8s.io/apiGroup": "ex.io", "metacontroller.k8s.io/resource": "hellos"}
CLUSTER_HELLOS = replace(HELLOS, namespaced=False)


def rolling(method: str = "RollingInPlace") -> CompositeController:
    """A controller of Hellos whose ConfigMaps are updated so."""
    plain = controller()
    return replace(plain, children=tuple(replace(rule, method=method) for rule in plain.children))  # type: ignore[arg-type]


class World:
    """A router for one kind of parents, over caches that hold what the watches told."""

    def __init__(self, parents: ResourceInfo = HELLOS, *, method: str = "RollingInPlace") -> None:
        self.parents = parents
        self.caches = {info.id: ResourceCache(info) for info in (parents, CONFIGMAPS, REVISIONS)}
        self.queue = WorkQueue(Queue(shard="0", epoch="e", seen=lambda _: True), clock=FakeClock())
        served = {id_: cache.resource for id_, cache in self.caches.items()}
        self.router = Router(queue=self.queue, caches=self.caches, subscriptions=RelatedSubscriptions(self.caches, served=lambda: served))
        found = instance_of(rolling(method), served)
        assert isinstance(found, Instance)
        self.router.controllers[found.controller.id] = b"{}"
        self.router.start(found, reason="started")

    def see(self, resource: ResourceInfo, seen: Record) -> None:
        change = self.caches[resource.id].put(seen)
        if change is not None:
            self.router.take(change)

    def revisions_of(self, name: str, *, namespace: str = "n") -> list[str]:
        seen = self.router.observe(JobKey(controller().id, self.parents.id, namespace, name))
        assert isinstance(seen, CachedObservation), seen
        return sorted(loads(item)["metadata"]["name"] for item in seen.revisions)

    def marks(self) -> dict[str, str]:
        """Why each parent is marked, by name; forgotten by this."""
        marks = {entry.key.name: entry.mark.reason for entry in self.queue.core.entries() if entry.mark}
        for entry in list(self.queue.core.entries()):
            self.queue.core.forget(entry.key)
        return marks


@pytest.mark.parametrize("method", ["RollingInPlace", "RollingRecreate"])
def test_revisions_are_watched_where_children_roll(method: str):
    found = instance_of(rolling(method), {info.id: info for info in (HELLOS, CONFIGMAPS, REVISIONS)})

    assert isinstance(found, Instance)
    assert found.resources == (HELLOS, CONFIGMAPS, REVISIONS)
    assert found.children == (CONFIGMAPS,)


def test_revisions_are_not_watched_where_nothing_rolls():
    found = instance_of(rolling("InPlace"), {info.id: info for info in (HELLOS, CONFIGMAPS, REVISIONS)})

    assert isinstance(found, Instance)
    assert found.resources == (HELLOS, CONFIGMAPS)


def test_rolling_controller_waits_for_the_kind_of_its_revisions():
    assert instance_of(rolling(), {HELLOS.id: HELLOS, CONFIGMAPS.id: CONFIGMAPS}) == Waiting((REVISIONS.id,))


def test_parent_is_shown_with_its_own_revisions_and_the_orphans_that_may_be():
    world = World()
    world.see(HELLOS, record("p", spec=WEB))
    world.see(REVISIONS, record("own", ownerReferences=owned_by("p")))
    world.see(REVISIONS, record("orphan", labels={"app": "web", **OF_HELLOS}))
    world.see(REVISIONS, record("of-another-resource", labels={"app": "web", **OF_HELLOS, "metacontroller.k8s.io/resource": "others"}))
    world.see(REVISIONS, record("of-another-selector", labels={"app": "db", **OF_HELLOS}))
    world.see(REVISIONS, record("elsewhere", namespace="m", labels={"app": "web", **OF_HELLOS}))
    world.see(REVISIONS, record("anothers", ownerReferences=owned_by("q")))

    assert world.revisions_of("p") == ["orphan", "own"]


def test_cluster_scoped_parent_has_its_revisions_in_the_default_namespace():
    world = World(CLUSTER_HELLOS)
    world.see(CLUSTER_HELLOS, record("p", namespace="", uid="uid-p", spec=WEB))
    world.see(REVISIONS, record("own", namespace="default", ownerReferences=owned_by("p", uid="uid-p")))
    world.see(REVISIONS, record("orphan", namespace="default", labels={"app": "web", **OF_HELLOS}))
    world.see(REVISIONS, record("elsewhere", namespace="n", ownerReferences=owned_by("p", uid="uid-p")))

    assert world.revisions_of("p", namespace="") == ["orphan", "own"]


def test_parent_is_shown_without_revisions_where_nothing_rolls():
    world = World(method="InPlace")
    world.see(HELLOS, record("p", spec=WEB))
    world.see(REVISIONS, record("own", ownerReferences=owned_by("p")))

    assert world.revisions_of("p") == []


def test_change_of_a_revision_marks_its_parent():
    world = World()
    world.see(HELLOS, record("p", spec=WEB))
    world.marks()

    world.see(REVISIONS, record("own", ownerReferences=owned_by("p")))

    assert list(world.marks()) == ["p"]
