"""Who is marked for a change, and what a parent's world looks like, over caches that hold what the watches told."""

from dataclasses import replace

import pytest

from metaloop.common.api.hook import Hook
from metaloop.common.faults import Fault
from metaloop.common.job import JobKey
from metaloop.common.json import loads
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import CachedObservation, Gone
from metaloop.common.related_query import RelatedQuery
from metaloop.common.report import SyncReport, Write
from metaloop.common.testing.clock import FakeClock
from metaloop.watcher.cache import ResourceCache
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.workqueue import Queue
from metaloop.watcher.route import Router
from metaloop.watcher.subscriptions import RelatedSubscriptions
from metaloop.watcher.workqueue import WorkQueue

from .objects import CONFIGMAPS, HELLOS, controller, owned_by, record, served
from .objects import instance as instance_of_hellos

CUSTOMIZE = Hook(name="customize", version="v1", strict=False, webhook={"url": "http://hook"})
WEB = {"selector": {"matchLabels": {"app": "web"}}}


class World:
    """A router with its caches, told of changes as watches tell them."""

    def __init__(self, *, parents: ResourceInfo = HELLOS) -> None:
        self.parents = parents
        self.caches = {parents.id: ResourceCache(parents), CONFIGMAPS.id: ResourceCache(CONFIGMAPS)}
        self.queue = WorkQueue(Queue(shard="0", epoch="e", seen=lambda _: True), clock=FakeClock())
        self.subscriptions = RelatedSubscriptions(self.caches, served=lambda: {id_: cache.resource for id_, cache in self.caches.items()})
        self.router = Router(queue=self.queue, caches=self.caches, subscriptions=self.subscriptions)

    def see(self, resource: ResourceInfo, seen: Record) -> None:
        change = self.caches[resource.id].put(seen)
        if change is not None:
            self.router.take(change)

    def lose(self, resource: ResourceInfo, lost: Record) -> None:
        change = self.caches[resource.id].remove(lost)
        if change is not None:
            self.router.take(change)

    def start(self, *, reason: str = "started", **options: object) -> Instance:
        instance = instance_of_hellos(parents=self.parents, **options)
        self.router.controllers[instance.controller.id] = b'{"the":"controller"}'
        self.router.start(instance, reason=reason)
        return instance

    def marks(self) -> dict[str, str]:
        """Why each parent is marked, by name; forgotten by this."""
        marks = {entry.key.name: entry.mark.reason for entry in self.queue.core.entries() if entry.mark}
        for entry in list(self.queue.core.entries()):
            self.queue.core.forget(entry.key)
        return marks

    def key(self, name: str, *, namespace: str = "n") -> JobKey:
        return JobKey(controller().id, self.parents.id, namespace, name)

    def observed_children(self, name: str, *, namespace: str = "n") -> list[str]:
        seen = self.router.observe(self.key(name, namespace=namespace))
        assert isinstance(seen, CachedObservation), seen
        (group,) = seen.children
        return sorted(loads(item)["metadata"]["name"] for item in group.objects)


@pytest.fixture
def world() -> World:
    world = World()
    world.see(HELLOS, record("p", spec=WEB))
    world.see(HELLOS, record("q"))
    return world


def test_a_controller_that_starts_has_all_its_parents_looked_at(world: World):
    world.start(reason="controller started")

    assert world.marks() == {"p": "controller started", "q": "controller started"}


def test_a_controller_that_does_not_run_marks_nobody(world: World):
    world.see(HELLOS, record("p", version=2))

    assert world.marks() == {}


def test_a_change_is_told_as_the_reason(world: World):
    world.start()
    world.marks()

    world.see(HELLOS, record("p", version=2))
    world.see(CONFIGMAPS, record("c", ownerReferences=owned_by("q")))

    assert world.marks() == {"p": "Hello n/p changed", "q": "ConfigMap n/c added"}


def test_a_parent_that_appears_is_new_and_whatever_follows_is_a_change(world: World):
    world.start()
    world.marks()

    world.see(HELLOS, record("r"))
    world.see(HELLOS, record("p", version=2))

    assert {entry.key.name: entry.mark.klass.name for entry in world.queue.core.entries() if entry.mark} == {"r": "NEW", "p": "CHANGED"}


def test_a_child_that_is_deleted_marks_its_parent(world: World):
    world.start()
    child = record("c", ownerReferences=owned_by("p"))
    world.see(CONFIGMAPS, child)
    world.marks()

    world.lose(CONFIGMAPS, child)

    assert world.marks() == {"p": "ConfigMap n/c deleted"}


def test_an_orphan_marks_the_parent_that_may_adopt_it(world: World):
    world.start()
    world.marks()

    world.see(CONFIGMAPS, record("c", labels={"app": "web"}))
    world.see(CONFIGMAPS, record("d", labels={"app": "db"}))

    assert world.marks() == {"p": "ConfigMap n/c added"}


def test_an_orphan_on_its_way_out_marks_nobody(world: World):
    world.start()
    world.marks()

    world.see(CONFIGMAPS, record("c", labels={"app": "web"}, deletionTimestamp="now"))

    assert world.marks() == {}


def test_an_orphan_is_matched_with_the_selector_that_its_parent_has_now(world: World):
    world.start()
    world.see(HELLOS, record("q", version=2, spec={"selector": {"matchLabels": {"app": "db"}}}))
    world.see(HELLOS, record("p", version=2, spec={}))
    world.marks()

    world.see(CONFIGMAPS, record("c", labels={"app": "web"}))
    world.see(CONFIGMAPS, record("d", labels={"app": "db"}))

    assert world.marks() == {"q": "ConfigMap n/d added"}


def test_a_deleted_parent_is_forgotten(world: World):
    world.start()

    world.lose(HELLOS, record("p"))

    assert list(world.marks()) == ["q"]
    assert world.router.observe(world.key("p")) == Gone(reason="the parent is gone")


def test_a_stopped_controller_marks_nobody_and_has_nothing_to_show(world: World):
    instance = world.start()

    world.router.stop(instance.controller.id)
    world.see(HELLOS, record("p", version=2))

    assert world.marks() == {}
    assert isinstance(world.router.observe(world.key("p")), Gone)


def test_what_is_observed_are_the_owned_and_the_orphans_that_match(world: World):
    world.start()
    for seen in (
        record("owned", ownerReferences=owned_by("p"), labels={"app": "web"}),
        record("owned-but-relabelled", ownerReferences=owned_by("p")),
        record("orphan", labels={"app": "web"}),
        record("unrelated", labels={"app": "db"}),
        record("another-parents", ownerReferences=owned_by("q"), labels={"app": "web"}),
        record("elsewhere", namespace="m", labels={"app": "web"}),
    ):
        world.see(CONFIGMAPS, seen)

    assert world.observed_children("p") == ["orphan", "owned", "owned-but-relabelled"]
    assert world.observed_children("q") == ["another-parents"]


def test_a_parent_that_is_not_selected_any_more_is_not_observed(world: World):
    world.start(match={"served": "yes"})

    assert world.router.observe(world.key("p")) == Gone(reason="the parent is not selected")


def test_an_observation_holds_bytes_as_they_were_seen(world: World):
    world.start()
    seen = world.router.observe(world.key("p"))

    assert isinstance(seen, CachedObservation)
    assert seen.controller == b'{"the":"controller"}'
    assert seen.parent is world.caches[HELLOS.id].objects["n", "p"].raw
    assert seen.parent_resource == HELLOS


def test_a_cluster_scoped_parent_observes_children_of_all_namespaces():
    parents = replace(HELLOS, namespaced=False)
    world = World(parents=parents)
    world.see(parents, record("p", namespace="", uid="u", spec=WEB))
    world.start()
    world.marks()

    world.see(CONFIGMAPS, record("c", namespace="a", labels={"app": "web"}))
    world.see(CONFIGMAPS, record("d", namespace="b", ownerReferences=owned_by("p", uid="u")))

    assert world.observed_children("p", namespace="") == ["c", "d"]
    assert world.marks() == {"p": "ConfigMap a/c added"}


def test_a_write_to_a_resource_that_nobody_watches_is_not_waited_for(world: World):
    unwatched = Write(resource=replace(CONFIGMAPS, resource="others").id, namespace="n", name="c", uid="u", resource_version="9")
    watched = replace(unwatched, resource=CONFIGMAPS.id)

    assert world.router.has_seen(unwatched)
    assert not world.router.has_seen(watched)


def test_parents_are_counted_as_they_come_and_go(world: World):
    instance = world.start(match={"served": "yes"})
    standing = world.router.stats[instance.controller.id]
    assert standing.parents == 0

    world.see(HELLOS, record("p", version=2, labels={"served": "yes"}))
    world.see(HELLOS, record("p", version=3, labels={"served": "yes"}))
    world.see(HELLOS, record("q", version=2, labels={"served": "yes"}))
    assert standing.parents == 2
    world.see(HELLOS, record("q", version=3))
    world.lose(HELLOS, record("p", labels={"served": "yes"}))

    assert standing.parents == 0


def test_a_failing_parent_counts_until_it_is_well_again_or_gone(world: World):
    instance = world.start()
    for name in ("p", "q"):
        world.router.record_report(SyncReport(key=world.key(name), lease="", result="retry", fault=Fault.TIMED_OUT))

    world.router.record_report(SyncReport(key=world.key("p"), lease="", result="done"))
    world.lose(HELLOS, record("q"))

    assert world.router.stats[instance.controller.id].failing == {}


def test_a_controller_that_changes_still_has_its_failing_parents(world: World):
    instance = world.start()
    world.router.record_report(SyncReport(key=world.key("p"), lease="", result="retry", fault=Fault.TIMED_OUT))

    world.start(generate_selector=True)

    assert list(world.router.stats[instance.controller.id].failing) == [world.key("p")]


def test_subscriptions_outlast_an_edit_that_keeps_the_customize_hook(world: World):
    world.see(HELLOS, record("p", spec=WEB))
    curious = replace(controller(), hooks=replace(controller().hooks, customize=CUSTOMIZE))
    world.router.start(served(curious, HELLOS, CONFIGMAPS), reason="started")
    world.subscriptions.subscribe(world.key("p"), "f", [RelatedQuery(resource=CONFIGMAPS.id)])

    world.router.start(served(curious, HELLOS, CONFIGMAPS), reason="changed")
    assert world.subscriptions.observe(world.key("p")) is not None
    world.start()

    assert world.subscriptions.observe(world.key("p")) is None
