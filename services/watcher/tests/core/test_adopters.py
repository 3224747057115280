"""Orphans find the parents that may adopt them, as if each parent had been asked."""

from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.objects.selector import Requirement, Selector
from metaloop.watcher.core.adopters import Adopters
from metaloop.watcher.core.record import ObjectKey

from ..objects import record

words = st.sampled_from(["a", "b", "c"])
labels = st.dictionaries(words, words, max_size=3)
requirements = st.one_of(
    st.builds(Requirement, words, st.just("In"), st.lists(words, min_size=1, max_size=2, unique=True).map(tuple)),
    st.builds(Requirement, words, st.just("NotIn"), st.lists(words, min_size=1, max_size=2, unique=True).map(tuple)),
    st.builds(Requirement, words, st.sampled_from(["Exists", "DoesNotExist"])),
)
selectors = st.lists(requirements, max_size=3).map(lambda each: Selector(tuple(each)))
parents = st.dictionaries(st.tuples(st.sampled_from(["", "n", "m"]), words), selectors)


@given(parents, parents, st.sampled_from(["n", "m"]), labels)
def test_the_index_finds_exactly_the_neighbours_whose_selectors_match(
    before: dict[tuple[str, str], Selector], after: dict[tuple[str, str], Selector], namespace: str, orphan: dict[str, str]
):
    now: dict[ObjectKey, Selector] = {}
    adopters = Adopters(lambda parent: now[parent.key])
    for now in (before, after):
        for key in before.keys() | after.keys():
            adopters.learn(key, record(key[1], namespace=key[0]) if key in now else None)

    found = list(adopters.matching(namespace, orphan))

    assert sorted(found) == sorted(key for key, selector in after.items() if key[0] in {namespace, ""} and selector.matches(orphan))
