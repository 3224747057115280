"""The caches of all watches: what is found in which, and how far they have come."""

from dataclasses import replace

import pytest

from metaloop.common.objects.resource import ResourceId
from metaloop.common.report import Write
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.watch import Scope, Watch, WatchId

from ..objects import CONFIGMAPS, HELLOS, caches_of, record

EVERYWHERE, HERE = Watch(CONFIGMAPS), Watch(CONFIGMAPS, Scope(namespace="n"))
NOBODY = WatchId(ResourceId("v1", "nothings"))


def write(*, version: int = 5, resource: ResourceId = CONFIGMAPS.id) -> Write:
    """A write that left a ConfigMap at a version."""
    return Write(resource=resource, namespace="n", name="a", uid="uid-n-a", resource_version=str(version))


def two_scopes() -> Caches:
    """ConfigMaps, watched everywhere and once more in one namespace."""
    caches = Caches()
    for watch in (EVERYWHERE, HERE):
        caches.open(watch, now=10.0)
    return caches


def synced(caches: Caches, watch: Watch, *, version: int) -> None:
    """The list of a watch held the ConfigMap a at a version."""
    cache = caches[watch.id]
    cache.begin_list()
    cache.put(record("a", version=version))
    cache.end_list(str(version))


def test_cache_is_found_by_its_watch_until_it_is_closed():
    caches = Caches()
    opened = caches.open(EVERYWHERE, now=0.0)

    found, number = caches.get(EVERYWHERE.id), len(caches)
    caches.close(EVERYWHERE.id)

    assert (found, number) == (opened, 1)
    assert caches.get(EVERYWHERE.id) is None
    assert list(caches) == []


def test_scopes_of_one_resource_have_caches_of_their_own():
    caches = two_scopes()

    caches.close(HERE.id)

    assert [cache.watch for cache in caches] == [EVERYWHERE]


def test_object_is_looked_up_where_it_is_watched():
    hello = record("a")
    caches = caches_of({HELLOS: [hello], CONFIGMAPS: []})

    assert caches.lookup(WatchId(HELLOS.id), ("n", "a")) is hello
    assert caches.lookup(WatchId(HELLOS.id), ("n", "b")) is None
    assert caches.lookup(WatchId(CONFIGMAPS.id), ("n", "a")) is None
    assert caches.lookup(NOBODY, ("n", "a")) is None


def test_write_is_seen_once_every_cache_of_its_resource_is_as_new():
    caches = two_scopes()
    synced(caches, EVERYWHERE, version=5)
    early = caches.has_seen(write())

    synced(caches, HERE, version=5)

    assert (early, caches.has_seen(write())) == (False, True)
    assert not caches.has_seen(write(version=6))


def test_write_to_what_nobody_watches_is_waited_for_by_nobody():
    assert Caches().has_seen(write())
    assert caches_of({HELLOS: []}).has_seen(write())


def test_resource_is_silent_while_one_of_its_watches_is():
    caches = two_scopes()
    caches[EVERYWHERE.id].sections[""].status.heard_at = 20.0

    assert caches.is_silent(CONFIGMAPS.id, since=15.0)
    caches[HERE.id].sections["n"].status.heard_at = 20.0
    assert not caches.is_silent(CONFIGMAPS.id, since=15.0)
    assert not caches.is_silent(HELLOS.id, since=15.0)


def test_watches_are_behind_while_one_of_them_catches_up():
    caches = two_scopes()
    caches[HERE.id].sections["n"].status.catch_up.broke(0.0)

    assert caches.is_behind([EVERYWHERE.id, HERE.id], now=10.0)
    assert not caches.is_behind([EVERYWHERE.id], now=10.0)
    assert not caches.is_behind([NOBODY], now=10.0)


def test_watch_is_synced_once_its_list_was_seen():
    caches = two_scopes()
    synced(caches, EVERYWHERE, version=1)

    assert caches.is_synced(EVERYWHERE.id)
    assert not caches.is_synced(HERE.id)
    assert not caches.is_synced(NOBODY)


def test_problem_of_a_watch_is_told_while_it_has_one():
    caches = two_scopes()
    caches[HERE.id].sections["n"].status.problem = "Forbidden: no"

    assert [caches.problem(watch) for watch in (HERE.id, EVERYWHERE.id, NOBODY)] == ["Forbidden: no", "", ""]


@pytest.mark.parametrize(("watched", "is_seen"), [("", True), ("mine", False), ("another", True)])
def test_write_is_awaited_by_watches_of_all_and_by_the_one_within_its_labels(watched: str, is_seen: bool):
    mine = Watch(CONFIGMAPS, Scope(labels="mine"))
    caches = Caches()
    for watch in (EVERYWHERE, mine):
        caches.open(watch, now=10.0)
    synced(caches, EVERYWHERE, version=5)
    synced(caches, mine, version=4)

    assert caches.has_seen(replace(write(), watched=watched)) is is_seen
