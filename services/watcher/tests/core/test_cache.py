"""The indexer answers as a search through all objects would, and says what was news."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.objects.selector import Requirement, Selector
from metaloop.common.report import UNKNOWN_VERSION, Write
from metaloop.watcher.core.cache import ResourceCache
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.watch import Watch

from ..objects import CONFIGMAPS, owned_by, record


def write(name: str, version: str, *, uid: str = "") -> Write:
    return Write(resource=CONFIGMAPS.id, namespace="n", name=name, uid=uid or f"uid-n-{name}", resource_version=version)


names = st.sampled_from(["a", "b", "c", "d"])
states = st.builds(
    lambda name, namespace, owner, labels: (name, namespace, owner, labels),
    names,
    st.sampled_from(["n", "m"]),
    st.sampled_from(["", "p", "q"]),
    st.dictionaries(names, names, max_size=2),
)


@given(st.lists(st.tuples(st.booleans(), states)))
def test_indexes_answer_as_a_search_through_everything_would(history: list[tuple[bool, tuple[str, str, str, dict[str, str]]]]):
    cache = ResourceCache(Watch(CONFIGMAPS), now=0.0)
    for version, (is_removed, (name, namespace, owner, labels)) in enumerate(history, start=1):
        owners = owned_by(owner) if owner else []
        seen = record(name, namespace=namespace, version=version, labels=labels, ownerReferences=owners)
        if is_removed:
            cache.remove(seen)
        else:
            cache.put(seen)

    everything = list(cache.objects.values())
    assert cache.bytes == sum(len(each.raw) for each in everything)
    wanted = Selector((Requirement("a", "In", ("b",)),))
    assert _keys(cache.owned_by("uid-n-p")) == _keys(each for each in everything if each.owner and each.owner.uid == "uid-n-p")
    for selector in (wanted, Selector(), Selector((Requirement("a", "Exists"),))):
        for namespace in ("n", ""):
            expected = (each for each in everything if not each.owner and namespace in {each.key[0], ""} and selector.matches(each.labels))
            assert _keys(cache.orphans(namespace, selector)) == _keys(expected)


def _keys(records: object) -> list[tuple[str, str]]:
    return sorted(each.key for each in records if isinstance(each, Record))  # type: ignore[attr-defined]


def test_the_same_version_again_is_no_news():
    cache = ResourceCache(Watch(CONFIGMAPS), now=0.0)

    first, again = cache.put(record("a", version=3)), cache.put(record("a", version=3))

    assert first is not None
    assert again is None


def test_a_new_list_implies_the_deletions_that_it_does_not_show():
    cache = ResourceCache(Watch(CONFIGMAPS), now=0.0)
    for name in ("kept", "gone"):
        cache.put(record(name, version=1))

    cache.begin_list()
    cache.put(record("kept", version=1))
    gone = cache.end_list("9")

    assert [(change.key, change.new) for change in gone] == [(("n", "gone"), None)]
    assert cache.is_synced
    assert cache.version == 9


def test_a_list_that_broke_off_implies_nothing():
    cache = ResourceCache(Watch(CONFIGMAPS), now=0.0)
    cache.put(record("kept", version=1))

    cache.begin_list()
    cache.begin_list()
    cache.put(record("kept", version=1))

    assert not cache.end_list("9")


@pytest.mark.parametrize(
    ("awaited", "expected"),
    [
        (write("a", "5"), True),
        (write("a", "6"), False),
        (write("absent", "6"), False),
        (write("absent", "4"), True),
        (write("a", "opaque"), True),
        (write("a", ""), False),
        (write("a", "", uid="former"), True),
        (write("absent", ""), True),
        (write("absent", UNKNOWN_VERSION), False),
        (write("a", UNKNOWN_VERSION), True),
    ],
)
def test_a_write_is_seen_when_the_watch_has_come_so_far(awaited: Write, expected: bool):
    cache = ResourceCache(Watch(CONFIGMAPS), now=0.0)
    cache.put(record("a", version=5))

    assert cache.has_seen(awaited) is expected


def test_a_deletion_is_seen_once_the_object_is_on_its_way_out():
    cache = ResourceCache(Watch(CONFIGMAPS), now=0.0)
    cache.put(record("a", version=5, deletionTimestamp="now"))

    assert cache.has_seen(write("a", ""))


def test_a_bookmark_moves_the_watch_on():
    cache = ResourceCache(Watch(CONFIGMAPS), now=0.0)
    cache.progress("12")

    assert cache.has_seen(write("absent", "12"))
