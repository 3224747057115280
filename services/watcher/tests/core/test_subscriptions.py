"""Subscriptions to related objects: who is marked for a change, and what a parent is shown."""

import asyncio

import pytest

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import loads
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.selector import EVERYTHING, Requirement, Selector
from metaloop.common.observation import CachedRelated
from metaloop.common.related_query import ANYWHERE, InNamespace, InNamespacesWith, RelatedQuery, Where
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.subscriptions import RelatedSubscriptions
from metaloop.watcher.core.watch import Scope, Watch, WatchId

from ..objects import CONFIGMAPS, HELLOS, record
from ..routing_in_hand import ServedInHand

NAMESPACES = ResourceInfo(api_version="v1", resource="namespaces", kind="Namespace", namespaced=False)
NODES = ResourceInfo(api_version="v1", resource="nodes", kind="Node", namespaced=False)
CONTROLLER = ControllerId("CompositeController", "hello")
P, Q = (JobKey(CONTROLLER, HELLOS.id, "n", name) for name in "pq")


def labelled(**labels: str) -> Selector:
    """What asks for these labels."""
    return Selector(tuple(Requirement(key, "In", (value,)) for key, value in labels.items()))


def query(resource: ResourceInfo = CONFIGMAPS, *, where: Where = ANYWHERE, labels: Selector = EVERYTHING, names: str = "") -> RelatedQuery:
    """A query for objects of these names, each a letter."""
    return RelatedQuery(resource=resource.id, where=where, labels=labels, names=frozenset(names))


class World:
    """Subscriptions over caches, each synced once its resource was listed."""

    def __init__(self, *, namespaces: tuple[str, ...] = ()) -> None:
        self.caches = Caches(namespaces=namespaces)
        self.served = ServedInHand()
        self.needs_changed = asyncio.Event()
        self.subscriptions = RelatedSubscriptions(self.caches, served=self.served, needs_changed=self.needs_changed)
        for resource in (CONFIGMAPS, NAMESPACES, NODES):
            self.serve(resource)
            self.sync(resource)

    def serve(self, resource: ResourceInfo) -> None:
        self.served.resources[resource.id] = resource

    def sync(self, resource: ResourceInfo, *records: Record) -> None:
        if self.caches.get(WatchId(resource.id)) is not None:
            self.caches.close(WatchId(resource.id))
        cache = self.caches.open(Watch(resource), now=0.0)
        for namespace in cache.sections:
            cache.begin_list(namespace)
        for each in records:
            cache.put(each)
        for namespace in cache.sections:
            cache.end_list("1", namespace)

    def see(self, resource: ResourceInfo, seen: Record) -> set[JobKey]:
        """Whom it concerns that an object is like this now."""
        return self._concerned(self.caches[WatchId(resource.id)].put(seen))

    def lose(self, resource: ResourceInfo, lost: Record) -> set[JobKey]:
        """Whom it concerns that an object is gone."""
        return self._concerned(self.caches[WatchId(resource.id)].remove(lost))

    def _concerned(self, change: Change | None) -> set[JobKey]:
        assert change is not None
        return self.subscriptions.concerned_by(change)

    def subscribe(self, key: JobKey, *queries: RelatedQuery) -> CachedRelated:
        return self.subscriptions.subscribe(key, "f", queries)

    def shown(self, *queries: RelatedQuery) -> list[str]:
        """The `namespace/name` of what a parent with these queries is shown."""
        (group,) = self.subscribe(P, *queries).groups
        shown = [loads(item)["metadata"] for item in group.objects]
        return [f"{metadata['namespace']}/{metadata['name']}" for metadata in shown]


@pytest.fixture
def world() -> World:
    """Two namespaces, one of them blue, each with two ConfigMaps, of which one is labelled."""
    world = World()
    world.sync(NAMESPACES, record("n", namespace="", labels={"team": "blue"}), record("m", namespace=""))
    world.sync(
        CONFIGMAPS,
        *(record("a", namespace=namespace, labels={"app": "web"}) for namespace in "nm"),
        *(record("b", namespace=namespace) for namespace in "nm"),
    )
    world.sync(NODES, record("x", namespace=""), record("y", namespace=""))
    return world


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (query(), ["m/a", "m/b", "n/a", "n/b"]),
        (query(labels=labelled(app="web")), ["m/a", "n/a"]),
        (query(labels=Selector((Requirement("app", "DoesNotExist"),))), ["m/b", "n/b"]),
        (query(names="a"), ["m/a", "n/a"]),
        (query(where=InNamespace("n")), ["n/a", "n/b"]),
        (query(where=InNamespace("n"), labels=labelled(app="web")), ["n/a"]),
        (query(where=InNamespace("n"), names="bc"), ["n/b"]),
        (query(where=InNamespacesWith(labelled(team="blue"))), ["n/a", "n/b"]),
        (query(where=InNamespacesWith(labelled(team="blue")), labels=labelled(app="web")), ["n/a"]),
        (query(where=InNamespacesWith(labelled(team="blue")), names="b"), ["n/b"]),
        (query(NODES), ["/x", "/y"]),
        (query(NODES, where=InNamespace("n"), names="y"), ["/y"]),
        (query(NODES, where=InNamespacesWith(labelled(team="blue"))), []),
    ],
)
def test_a_parent_is_shown_what_its_query_selects(world: World, wanted: RelatedQuery, expected: list[str]):
    assert world.shown(wanted) == expected


def test_what_two_queries_select_is_shown_once(world: World):
    assert world.shown(query(names="a"), query(where=InNamespace("n"))) == ["m/a", "n/a", "n/b"]


def test_each_queried_resource_has_a_group_even_if_empty(world: World):
    related = world.subscribe(P, query(NODES, names="z"), query(names="z"))

    assert [(group.resource, group.objects) for group in related.groups] == [(NODES, []), (CONFIGMAPS, [])]


def test_the_answer_follows_the_cache_and_keeps_its_fingerprint(world: World):
    world.subscribe(P, query(where=InNamespace("n"), names="c"))

    world.see(CONFIGMAPS, record("c"))

    related = world.subscriptions.observe(P)
    assert related is not None
    assert related.fingerprint == "f"
    assert [len(group.objects) for group in related.groups] == [1]


def test_a_parent_without_subscriptions_is_shown_nothing(world: World):
    assert world.subscriptions.observe(P) is None


def test_a_change_concerns_exactly_the_subscribers_of_the_object(world: World):
    world.subscribe(P, query(where=InNamespace("n"), names="a"))
    world.subscribe(Q, query(where=InNamespace("n"), names="b"))

    assert world.see(CONFIGMAPS, record("a", version=2)) == {P}
    assert world.lose(CONFIGMAPS, record("b")) == {Q}
    assert world.see(CONFIGMAPS, record("c")) == set()


def test_an_object_that_stops_matching_concerns_its_former_subscribers(world: World):
    world.subscribe(P, query(labels=labelled(app="web")))

    assert world.see(CONFIGMAPS, record("a", version=2, labels={"app": "db"})) == {P}
    assert world.see(CONFIGMAPS, record("a", version=3, labels={"app": "db"})) == set()


def test_a_relabelled_namespace_concerns_queries_by_its_labels(world: World):
    world.subscribe(P, query(where=InNamespacesWith(labelled(team="red"))))
    world.subscribe(Q, query(where=InNamespacesWith(labelled(team="red")), names="z"))

    assert world.see(NAMESPACES, record("m", namespace="", version=2, labels={"team": "red"})) == {P}
    assert world.see(NAMESPACES, record("m", namespace="", version=3, labels={"team": "red", "more": ""})) == set()
    assert world.see(NAMESPACES, record("m", namespace="", version=4)) == {P}


def test_an_unserved_resource_is_told_apart_from_one_being_listed(world: World):
    world.caches.close(WatchId(CONFIGMAPS.id))

    related = world.subscribe(P, query(), query(HELLOS), query(NODES, names="x"))

    assert (related.waiting, related.unknown) == ([CONFIGMAPS], [HELLOS.id])
    assert [group.resource for group in related.groups] == [NODES]


def test_an_incomplete_answer_becomes_answerable_once_everything_is_there(world: World):
    world.caches.close(WatchId(CONFIGMAPS.id))
    world.subscribe(P, query(), query(HELLOS))
    world.subscribe(Q, query(NODES))

    world.sync(CONFIGMAPS)
    assert world.subscriptions.take_answerable() == []
    world.serve(HELLOS)
    world.sync(HELLOS)

    assert world.subscriptions.take_answerable() == [P]
    assert world.subscriptions.take_answerable() == []


def test_a_query_by_namespace_labels_waits_for_namespaces_too(world: World):
    world.caches.close(WatchId(NAMESPACES.id))

    related = world.subscribe(P, query(where=InNamespacesWith(labelled(team="blue"))))

    assert related.waiting == [NAMESPACES]
    assert world.subscriptions.watches == {WatchId(CONFIGMAPS.id), WatchId(NAMESPACES.id)}


def test_a_resource_without_subscribers_is_not_needed(world: World):
    world.subscribe(P, query())
    assert world.subscriptions.watches == {WatchId(CONFIGMAPS.id)}
    world.subscribe(Q, query())
    world.needs_changed.clear()

    world.subscribe(P, query(NODES))
    world.subscriptions.forget(Q)
    world.subscriptions.forget_controller(CONTROLLER)

    assert world.needs_changed.is_set()
    assert world.subscriptions.watches == set()
    assert world.see(CONFIGMAPS, record("a", version=2)) == set()


def test_a_second_subscriber_needs_no_other_watch(world: World):
    world.subscribe(P, query())
    world.needs_changed.clear()

    world.subscribe(Q, query())

    assert not world.needs_changed.is_set()


def test_subscriptions_are_kept_for_parents_that_are_still_served(world: World):
    world.subscribe(P, query())
    world.subscribe(Q, query())

    world.subscriptions.forget_controller(CONTROLLER, unless=lambda key: key == P)

    assert world.see(CONFIGMAPS, record("a", version=2)) == {P}


# -- queries within a label selector -----------------------------------------------------------------------------------

OURS = Scope(labels="op.example.com/owner-id")
WITHIN = RelatedQuery(resource=CONFIGMAPS.id, labels=labelled(**{"op.example.com/owner-id": "p"}), watched=OURS.labels)


def opened(world: World, *records: Record) -> WatchId:
    """The watch within the label selector, once its list is complete."""
    cache = world.caches.open(Watch(CONFIGMAPS, OURS), now=0.0)
    cache.begin_list()
    for each in records:
        cache.put(each)
    cache.end_list("1")
    return cache.watch.id


def owned(name: str, *, by: str = "p", version: int = 1) -> Record:
    """A ConfigMap with the label."""
    return record(name, version=version, labels={"op.example.com/owner-id": by})


def test_query_within_labels_needs_a_watch_of_its_own(world: World):
    world.sync(CONFIGMAPS, owned("a"))

    related = world.subscribe(P, WITHIN)

    assert world.subscriptions.watches == {WatchId(CONFIGMAPS.id, OURS)}
    assert related.waiting == [CONFIGMAPS]


def test_query_within_labels_selects_from_its_own_watch(world: World):
    opened(world, owned("a"), owned("b", by="q"))
    world.sync(CONFIGMAPS, owned("seen only by the other watch"))

    [group] = world.subscribe(P, WITHIN).groups

    assert [loads(obj)["metadata"]["name"] for obj in group.objects] == ["a"]


def test_one_parent_may_ask_of_one_resource_within_labels_and_beyond(world: World):
    opened(world, owned("a"))
    world.sync(CONFIGMAPS, record("b"))

    groups = world.subscribe(P, WITHIN, query(names="b")).groups

    assert [[loads(obj)["metadata"]["name"] for obj in group.objects] for group in groups] == [["a"], ["b"]]


def test_only_changes_within_the_labels_concern_the_subscriber(world: World):
    watch = opened(world, owned("a"))
    world.subscribe(P, WITHIN)

    assert world.see(CONFIGMAPS, owned("a", version=2)) == set()
    change = world.caches[watch].put(owned("a", version=2))
    assert change is not None
    assert world.subscriptions.concerned_by(change) == {P}
    change = world.caches[watch].put(owned("b", by="q"))
    assert change is not None
    assert world.subscriptions.concerned_by(change) == set()


def test_parent_is_marked_once_the_watch_within_the_labels_has_synced(world: World):
    world.subscribe(P, WITHIN)
    assert world.subscriptions.take_answerable() == []

    opened(world)

    assert world.subscriptions.take_answerable() == [P]


OUTSIDE = {
    "another namespace": InNamespace("elsewhere"),
    "namespaces by their labels": InNamespacesWith(labelled(team="a")),
}


@pytest.mark.parametrize("where", OUTSIDE.values(), ids=list(OUTSIDE))
def test_a_query_outside_of_the_watched_namespaces_is_never_answered(where: Where):
    world = World(namespaces=("n", "m"))
    world.needs_changed.clear()

    related = world.subscribe(P, query(where=where))

    assert [info.id for info in related.waiting] == [CONFIGMAPS.id]
    assert world.subscriptions.take_answerable() == []
    assert "METALOOP_NAMESPACES restricts this watcher to the namespaces n, m" in world.subscriptions.outside(CONTROLLER)
    assert world.needs_changed.is_set(), "somebody tells it on the controller"


def test_a_query_within_the_watched_namespaces_is_answered():
    world = World(namespaces=("n", "m"))
    world.sync(CONFIGMAPS, record("a", namespace="n"), record("b", namespace="m"))

    assert world.shown(query(where=InNamespace("m"))) == ["m/b"]
    assert world.shown(query()) == ["m/b", "n/a"]
    assert world.subscriptions.outside(CONTROLLER) == ""
