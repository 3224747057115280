"""Routing: which parents a change marks, and what a claim shows of a parent."""

from dataclasses import replace

import pytest

from metaloop.common.api.hook import Hook
from metaloop.common.faults import Fault
from metaloop.common.job import JobKey
from metaloop.common.json import loads
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.related_query import RelatedQuery
from metaloop.common.report import SyncReport, Write
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.watch import WatchId

from .objects import CONFIGMAPS, HELLOS, controller, owned_by, record, served
from .objects import instance as instance_of_hellos
from .routing_in_hand import RoutingInHand

CUSTOMIZE = Hook(name="customize", version="v1", strict=False, webhook={"url": "http://hook"})
WEB = {"selector": {"matchLabels": {"app": "web"}}}


class World(RoutingInHand):
    """A router over caches of parents and ConfigMaps, told of changes as watches tell them."""

    def __init__(self, *, parents: ResourceInfo = HELLOS) -> None:
        super().__init__(parents, CONFIGMAPS)
        self.parents = parents

    def serve(self, *, reason: str = "started", **options: object) -> Instance:
        instance = instance_of_hellos(parents=self.parents, **options)
        self.start(instance, reason=reason)
        return instance

    def take_reasons(self) -> dict[str, str]:
        """Why each parent is marked, by name; then none is."""
        return {key.name: reason for key, reason in self.take_marks().items()}

    def key(self, name: str, *, namespace: str = "n") -> JobKey:
        return JobKey(controller().id, self.parents.id, namespace, name)

    def observed_children(self, name: str, *, namespace: str = "n") -> list[str]:
        (group,) = self.observe(self.key(name, namespace=namespace)).children
        return sorted(loads(item)["metadata"]["name"] for item in group.objects)


@pytest.fixture
def world() -> World:
    world = World()
    world.see(HELLOS, record("p", spec=WEB))
    world.see(HELLOS, record("q"))
    return world


def test_a_controller_that_starts_has_all_its_parents_looked_at(world: World):
    world.serve(reason="controller started")

    assert world.take_reasons() == {"p": "controller started", "q": "controller started"}


def test_a_controller_that_does_not_run_marks_nobody(world: World):
    world.see(HELLOS, record("p", version=2))

    assert world.take_reasons() == {}


def test_a_change_is_told_as_the_reason(world: World):
    world.serve()
    world.take_reasons()

    world.see(HELLOS, record("p", version=2))
    world.see(CONFIGMAPS, record("c", ownerReferences=owned_by("q")))

    assert world.take_reasons() == {"p": "Hello n/p changed", "q": "ConfigMap n/c added"}


def test_a_parent_that_appears_is_new_and_whatever_follows_is_a_change(world: World):
    world.serve()
    world.take_reasons()

    world.see(HELLOS, record("r"))
    world.see(HELLOS, record("p", version=2))

    assert {entry.key.name: entry.mark.klass.name for entry in world.queue.entries() if entry.mark} == {"r": "NEW", "p": "CHANGED"}


def test_a_child_that_is_deleted_marks_its_parent(world: World):
    world.serve()
    child = record("c", ownerReferences=owned_by("p"))
    world.see(CONFIGMAPS, child)
    world.take_reasons()

    world.lose(CONFIGMAPS, child)

    assert world.take_reasons() == {"p": "ConfigMap n/c deleted"}


def test_an_orphan_marks_the_parent_that_may_adopt_it(world: World):
    world.serve()
    world.take_reasons()

    world.see(CONFIGMAPS, record("c", labels={"app": "web"}))
    world.see(CONFIGMAPS, record("d", labels={"app": "db"}))

    assert world.take_reasons() == {"p": "ConfigMap n/c added"}


def test_an_orphan_on_its_way_out_marks_nobody(world: World):
    world.serve()
    world.take_reasons()

    world.see(CONFIGMAPS, record("c", labels={"app": "web"}, deletionTimestamp="now"))

    assert world.take_reasons() == {}


def test_an_orphan_is_matched_with_the_selector_that_its_parent_has_now(world: World):
    world.serve()
    world.see(HELLOS, record("q", version=2, spec={"selector": {"matchLabels": {"app": "db"}}}))
    world.see(HELLOS, record("p", version=2, spec={}))
    world.take_reasons()

    world.see(CONFIGMAPS, record("c", labels={"app": "web"}))
    world.see(CONFIGMAPS, record("d", labels={"app": "db"}))

    assert world.take_reasons() == {"q": "ConfigMap n/d added"}


def test_a_deleted_parent_is_forgotten(world: World):
    world.serve()

    world.lose(HELLOS, record("p"))

    assert list(world.take_reasons()) == ["q"]
    assert world.refusal(world.key("p")) == "the parent is gone"


def test_a_stopped_controller_marks_nobody_and_has_nothing_to_show(world: World):
    instance = world.serve()

    world.router.stop(instance.controller.id)
    world.see(HELLOS, record("p", version=2))

    assert world.take_reasons() == {}
    assert world.refusal(world.key("p")).endswith("is not running")


def test_what_is_observed_are_the_owned_and_the_orphans_that_match(world: World):
    world.serve()
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
    world.serve(match={"served": "yes"})

    assert world.refusal(world.key("p")) == "the parent is not selected"


def test_an_observation_holds_bytes_as_they_were_seen(world: World):
    world.serve()
    world.router.show(controller().id, b'{"the":"controller"}')

    seen = world.observe(world.key("p"))

    assert seen.controller == b'{"the":"controller"}'
    assert seen.parent is world.caches[WatchId(HELLOS.id)].objects["n", "p"].raw
    assert seen.parent_resource == HELLOS


def test_a_cluster_scoped_parent_observes_children_of_all_namespaces():
    parents = replace(HELLOS, namespaced=False)
    world = World(parents=parents)
    world.see(parents, record("p", namespace="", uid="u", spec=WEB))
    world.serve()
    world.take_reasons()

    world.see(CONFIGMAPS, record("c", namespace="a", labels={"app": "web"}))
    world.see(CONFIGMAPS, record("d", namespace="b", ownerReferences=owned_by("p", uid="u")))

    assert world.observed_children("p", namespace="") == ["c", "d"]
    assert world.take_reasons() == {"p": "ConfigMap a/c added"}


def test_a_write_to_a_resource_that_nobody_watches_is_not_waited_for(world: World):
    unwatched = Write(resource=replace(CONFIGMAPS, resource="others").id, namespace="n", name="c", uid="u", resource_version="9")
    watched = replace(unwatched, resource=CONFIGMAPS.id)

    assert world.caches.has_seen(unwatched)
    assert not world.caches.has_seen(watched)


def test_parents_are_counted_as_they_come_and_go(world: World):
    instance = world.serve(match={"served": "yes"})
    stats = world.router.stats[instance.controller.id]
    assert stats.parents == 0

    world.see(HELLOS, record("p", version=2, labels={"served": "yes"}))
    world.see(HELLOS, record("p", version=3, labels={"served": "yes"}))
    world.see(HELLOS, record("q", version=2, labels={"served": "yes"}))
    assert stats.parents == 2
    world.see(HELLOS, record("q", version=3))
    world.lose(HELLOS, record("p", labels={"served": "yes"}))

    assert stats.parents == 0


def test_a_failing_parent_counts_until_it_is_well_again_or_gone(world: World):
    instance = world.serve()
    for name in ("p", "q"):
        world.router.record_report(SyncReport(key=world.key(name), lease="", result="retry", fault=Fault.TIMED_OUT))

    world.router.record_report(SyncReport(key=world.key("p"), lease="", result="done"))
    world.lose(HELLOS, record("q"))

    assert world.router.stats[instance.controller.id].failing == {}


def test_a_parent_that_is_deleted_before_its_sync_has_failed_does_not_fail(world: World):
    instance = world.serve()
    world.lose(HELLOS, record("p"))

    world.router.record_report(SyncReport(key=world.key("p"), lease="", result="retry", fault=Fault.TIMED_OUT))

    assert world.router.stats[instance.controller.id].failing == {}


def test_a_controller_that_changes_still_has_its_failing_parents(world: World):
    instance = world.serve()
    world.router.record_report(SyncReport(key=world.key("p"), lease="", result="retry", fault=Fault.TIMED_OUT))

    world.serve(generate_selector=True)

    assert list(world.router.stats[instance.controller.id].failing) == [world.key("p")]


def test_subscriptions_outlast_an_edit_that_keeps_the_customize_hook(world: World):
    world.see(HELLOS, record("p", spec=WEB))
    curious = replace(controller(), hooks=replace(controller().hooks, customize=CUSTOMIZE))
    world.start(served(curious, HELLOS, CONFIGMAPS))
    world.subscriptions.subscribe(world.key("p"), "f", [RelatedQuery(resource=CONFIGMAPS.id)])

    world.start(served(curious, HELLOS, CONFIGMAPS))
    assert world.subscriptions.observe(world.key("p")) is not None
    world.serve()

    assert world.subscriptions.observe(world.key("p")) is None
