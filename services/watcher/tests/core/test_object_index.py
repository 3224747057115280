"""The index of objects: it finds what a search through all objects would find."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from metaloop.common.objects.selector import Requirement, Selector
from metaloop.watcher.core.object_index import KeyGroups, ObjectIndex
from metaloop.watcher.core.record import ObjectKey, Record

from ..objects import record

_NAMESPACES, _NAMES, _VALUES = ("", "m", "n"), ("a", "b", "c"), ("x", "y")
ALL = Selector(requirements=())


def equals(value: str) -> Selector:
    return Selector(requirements=(Requirement(key="app", operator="In", values=(value,)),))


class Indexed(RuleBasedStateMachine):
    """An index beside the objects that it was told of."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[ObjectKey, Record] = {}
        self.index = ObjectIndex(())

    @rule(namespace=st.sampled_from(_NAMESPACES), name=st.sampled_from(_NAMES), value=st.sampled_from(["", *_VALUES]))
    def put(self, namespace: str, name: str, value: str) -> None:
        self.lose(namespace, name)
        made = record(name, namespace=namespace, labels={"app": value, name: "own"} if value else {})
        self.objects[made.key] = made
        self.index.add(made)

    @rule(namespace=st.sampled_from(_NAMESPACES), name=st.sampled_from(_NAMES))
    def lose(self, namespace: str, name: str) -> None:
        gone = self.objects.pop((namespace, name), None)
        if gone is not None:
            self.index.remove(gone)

    @invariant()
    def names_are_found(self) -> None:
        for name in _NAMES:
            assert sorted(self.index.named([name])) == sorted(key for key in self.objects if key[1] == name)

    @invariant()
    def labels_are_found(self) -> None:
        for value in _VALUES:
            having = {key for key, each in self.objects.items() if each.labels.get("app") == value}
            assert set(self.index.anywhere(equals(value))) == having
            for namespace in _NAMESPACES:
                assert set(self.index.in_namespace(namespace, equals(value))) == {key for key in having if key[0] == namespace}

    @invariant()
    def everything_is_found_without_a_label(self) -> None:
        assert set(self.index.anywhere(ALL)) == set(self.objects)
        for namespace in _NAMESPACES:
            assert set(self.index.in_namespace(namespace, ALL)) == {key for key in self.objects if key[0] == namespace}


TestIndexed = Indexed.TestCase
TestIndexed.settings = settings(max_examples=50, stateful_step_count=20, deadline=None)


def test_key_that_is_filed_twice_is_there_once():
    postings = KeyGroups[str]()

    for _ in range(2):
        postings.add("under", ("n", "a"))

    assert list(postings.under("under")) == [("n", "a")]


def test_keys_come_in_the_order_in_which_they_were_filed():
    postings = KeyGroups[str]()
    for name in "cab":
        postings.add("under", ("n", name))

    postings.remove("under", ("n", "a"))

    assert [name for _, name in postings.under("under")] == ["c", "b"]


def test_nothing_is_under_what_was_emptied():
    postings = KeyGroups[str]()
    for name in "ab":
        postings.add("under", ("n", name))
    for name in "ab":
        postings.remove("under", ("n", name))

    assert (dict(postings.under("under")), list(postings.all())) == ({}, [])
