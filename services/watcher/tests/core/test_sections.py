"""Caches of a watcher that is restricted to some namespaces: each namespace is listed and watched on its own."""

import pytest

from metaloop.common.report import Write
from metaloop.watcher.core.cache import ResourceCache
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.watch import Scope, Watch

from ..objects import CONFIGMAPS, HELLOS, record
from .test_subscriptions import NAMESPACES

ALL = Watch(CONFIGMAPS)


def restricted() -> ResourceCache:
    """ConfigMaps of two namespaces."""
    return Caches(namespaces=("a", "b")).open(ALL, now=10.0)


def write(namespace: str, *, version: int) -> Write:
    return Write(resource=CONFIGMAPS.id, namespace=namespace, name="x", uid=f"uid-{namespace}-x", resource_version=str(version))


def test_each_namespace_is_asked_for_on_its_own():
    cache = restricted()

    assert [section.watch for section in cache.sections.values()] == [Watch(CONFIGMAPS, Scope("a")), Watch(CONFIGMAPS, Scope("b"))]
    assert cache.watch == ALL


@pytest.mark.parametrize("watch", [Watch(NAMESPACES), Watch(CONFIGMAPS, Scope("n"))], ids=["cluster-scoped", "within a namespace"])
def test_what_is_in_no_namespace_or_in_one_is_asked_for_at_once(watch: Watch):
    cache = Caches(namespaces=("a", "b")).open(watch, now=0.0)

    assert [section.watch for section in cache.sections.values()] == [watch]


def test_labels_restrict_each_section():
    cache = Caches(namespaces=("a",)).open(Watch(HELLOS, Scope(labels="of=c")), now=0.0)

    assert cache.sections["a"].watch.scope == Scope("a", "of=c")


def test_a_cache_is_synced_once_every_namespace_was_listed():
    cache = restricted()

    cache.begin_list("a")
    cache.end_list("5", "a")
    before = cache.is_synced
    cache.begin_list("b")
    cache.end_list("6", "b")

    assert (before, cache.is_synced, cache.version) == (False, True, 5)


def test_the_list_of_a_namespace_removes_nothing_from_another():
    cache = restricted()
    for namespace in "ab":
        cache.put(record("x", namespace=namespace))

    cache.begin_list("a")
    gone = cache.end_list("9", "a")

    assert [change.key for change in gone] == [("a", "x")]
    assert [change.watch for change in gone] == [ALL], "rules listen to the whole"
    assert list(cache.objects) == [("b", "x")]


def test_a_write_is_seen_once_its_own_namespace_has_come_so_far():
    cache = restricted()
    cache.progress("9", "a")

    assert cache.has_seen(write("a", version=9))
    assert not cache.has_seen(write("b", version=9))


def test_a_write_to_a_namespace_that_nobody_watches_is_not_awaited():
    assert restricted().has_seen(write("elsewhere", version=9))


def test_the_problem_of_one_namespace_names_it():
    cache = restricted()
    cache.sections["b"].status.problem, cache.sections["b"].status.is_refused = "Forbidden: no", True

    assert cache.problem == "in b: Forbidden: no"
    assert cache.is_refused


def test_a_cache_is_behind_and_silent_as_its_worst_section_is():
    cache = restricted()
    cache.sections["a"].status.heard_at = 20.0
    cache.sections["b"].status.catch_up.broke(0.0)

    assert cache.is_behind(1.0)
    assert cache.heard_at == 10.0
