"""What parents follow: who is marked for a change of it, and what they are told."""

import pytest

from metaloop.common.interest import ANYWHERE, InNamespace, InNamespacesWith, Interest, Where
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import loads
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.selector import EVERYTHING, Requirement, Selector
from metaloop.common.observation import CachedRelated
from metaloop.watcher.cache import ResourceCache
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.record import Record
from metaloop.watcher.interests import Interests

from .objects import CONFIGMAPS, HELLOS, record

NAMESPACES = ResourceInfo(api_version="v1", resource="namespaces", kind="Namespace", namespaced=False)
NODES = ResourceInfo(api_version="v1", resource="nodes", kind="Node", namespaced=False)
CONTROLLER = ControllerId("CompositeController", "hello")
P, Q = (JobKey(CONTROLLER, HELLOS.id, "n", name) for name in "pq")


def labelled(**labels: str) -> Selector:
    """What asks for these labels."""
    return Selector(tuple(Requirement(key, "In", (value,)) for key, value in labels.items()))


def interest(resource: ResourceInfo = CONFIGMAPS, *, where: Where = ANYWHERE, labels: Selector = EVERYTHING, names: str = "") -> Interest:
    """An interest in objects of these names, each a letter."""
    return Interest(resource=resource.id, where=where, labels=labels, names=frozenset(names))


class World:
    """Interests over caches of which each is synced once its resource was listed."""

    def __init__(self) -> None:
        self.caches: dict[ResourceId, ResourceCache] = {}
        self.served: dict[ResourceId, ResourceInfo] = {}
        self.interests = Interests(self.caches, served=lambda: self.served)
        for resource in (CONFIGMAPS, NAMESPACES, NODES):
            self.serve(resource)
            self.sync(resource)

    def serve(self, resource: ResourceInfo) -> None:
        self.served[resource.id] = resource

    def sync(self, resource: ResourceInfo, *records: Record) -> None:
        cache = self.caches[resource.id] = ResourceCache(resource)
        cache.begin_list()
        for each in records:
            cache.put(each)
        cache.end_list("1")

    def see(self, resource: ResourceInfo, seen: Record) -> set[JobKey]:
        """Whom it concerns that an object is like this now."""
        return self._concerned(self.caches[resource.id].put(seen))

    def lose(self, resource: ResourceInfo, lost: Record) -> set[JobKey]:
        """Whom it concerns that an object is gone."""
        return self._concerned(self.caches[resource.id].remove(lost))

    def _concerned(self, change: Change | None) -> set[JobKey]:
        assert change is not None
        return self.interests.concerned_by(change)

    def follow(self, key: JobKey, *interests: Interest) -> CachedRelated:
        return self.interests.follow(key, "f", interests)

    def shown(self, *interests: Interest) -> list[str]:
        """The `namespace/name` of what a parent of these interests is shown."""
        (group,) = self.follow(P, *interests).groups
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
        (interest(), ["m/a", "m/b", "n/a", "n/b"]),
        (interest(labels=labelled(app="web")), ["m/a", "n/a"]),
        (interest(labels=Selector((Requirement("app", "DoesNotExist"),))), ["m/b", "n/b"]),
        (interest(names="a"), ["m/a", "n/a"]),
        (interest(where=InNamespace("n")), ["n/a", "n/b"]),
        (interest(where=InNamespace("n"), labels=labelled(app="web")), ["n/a"]),
        (interest(where=InNamespace("n"), names="bc"), ["n/b"]),
        (interest(where=InNamespacesWith(labelled(team="blue"))), ["n/a", "n/b"]),
        (interest(where=InNamespacesWith(labelled(team="blue")), labels=labelled(app="web")), ["n/a"]),
        (interest(where=InNamespacesWith(labelled(team="blue")), names="b"), ["n/b"]),
        (interest(NODES), ["/x", "/y"]),
        (interest(NODES, where=InNamespace("n"), names="y"), ["/y"]),
        (interest(NODES, where=InNamespacesWith(labelled(team="blue"))), []),
    ],
)
def test_a_parent_is_shown_what_its_interest_selects(world: World, wanted: Interest, expected: list[str]):
    assert world.shown(wanted) == expected


def test_what_two_interests_select_is_shown_once(world: World):
    assert world.shown(interest(names="a"), interest(where=InNamespace("n"))) == ["m/a", "n/a", "n/b"]


def test_each_resource_has_its_group_though_nothing_is_in_it(world: World):
    related = world.follow(P, interest(NODES, names="z"), interest(names="z"))

    assert [(group.resource, group.objects) for group in related.groups] == [(NODES, []), (CONFIGMAPS, [])]


def test_what_is_told_follows_the_cache_and_keeps_its_name(world: World):
    world.follow(P, interest(where=InNamespace("n"), names="c"))

    world.see(CONFIGMAPS, record("c"))

    related = world.interests.observe(P)
    assert related is not None
    assert related.fingerprint == "f"
    assert [len(group.objects) for group in related.groups] == [1]


def test_a_parent_that_told_nothing_is_shown_nothing(world: World):
    assert world.interests.observe(P) is None


def test_a_change_concerns_exactly_those_who_follow_the_object(world: World):
    world.follow(P, interest(where=InNamespace("n"), names="a"))
    world.follow(Q, interest(where=InNamespace("n"), names="b"))

    assert world.see(CONFIGMAPS, record("a", version=2)) == {P}
    assert world.lose(CONFIGMAPS, record("b")) == {Q}
    assert world.see(CONFIGMAPS, record("c")) == set()


def test_an_object_that_is_selected_no_longer_concerns_who_followed_it(world: World):
    world.follow(P, interest(labels=labelled(app="web")))

    assert world.see(CONFIGMAPS, record("a", version=2, labels={"app": "db"})) == {P}
    assert world.see(CONFIGMAPS, record("a", version=3, labels={"app": "db"})) == set()


def test_a_namespace_that_is_relabelled_concerns_who_looks_by_labels_and_finds_something(world: World):
    world.follow(P, interest(where=InNamespacesWith(labelled(team="red"))))
    world.follow(Q, interest(where=InNamespacesWith(labelled(team="red")), names="z"))

    assert world.see(NAMESPACES, record("m", namespace="", version=2, labels={"team": "red"})) == {P}
    assert world.see(NAMESPACES, record("m", namespace="", version=3, labels={"team": "red", "more": ""})) == set()
    assert world.see(NAMESPACES, record("m", namespace="", version=4)) == {P}


def test_a_resource_that_is_not_served_is_told_apart_from_one_that_is_being_listed(world: World):
    world.caches.pop(CONFIGMAPS.id)

    related = world.follow(P, interest(), interest(HELLOS), interest(NODES, names="x"))

    assert (related.waiting, related.unknown) == ([CONFIGMAPS], [HELLOS.id])
    assert [group.resource for group in related.groups] == [NODES]


def test_who_had_to_wait_is_told_once_when_all_is_there(world: World):
    world.caches.pop(CONFIGMAPS.id)
    world.follow(P, interest(), interest(HELLOS))
    world.follow(Q, interest(NODES))

    world.sync(CONFIGMAPS)
    assert world.interests.take_answerable() == []
    world.serve(HELLOS)
    world.sync(HELLOS)

    assert world.interests.take_answerable() == [P]
    assert world.interests.take_answerable() == []


def test_who_looks_by_namespace_labels_waits_for_namespaces_too(world: World):
    world.caches.pop(NAMESPACES.id)

    related = world.follow(P, interest(where=InNamespacesWith(labelled(team="blue"))))

    assert related.waiting == [NAMESPACES]
    assert world.interests.resources == {CONFIGMAPS.id, NAMESPACES.id}


def test_what_nobody_follows_any_more_is_not_needed(world: World):
    changes: list[set[ResourceId]] = []
    world.interests.on_change = lambda: changes.append(world.interests.resources)
    world.follow(P, interest())
    world.follow(Q, interest())

    world.follow(P, interest(NODES))
    world.interests.forget(Q)
    world.interests.forget_controller(CONTROLLER)

    assert changes[0] == {CONFIGMAPS.id}
    assert changes[-1] == set()
    assert world.see(CONFIGMAPS, record("a", version=2)) == set()


def test_interests_are_kept_for_the_parents_that_are_still_served(world: World):
    world.follow(P, interest())
    world.follow(Q, interest())

    world.interests.forget_controller(CONTROLLER, unless=lambda key: key == P)

    assert world.see(CONFIGMAPS, record("a", version=2)) == {P}
