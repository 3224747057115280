"""Queries for related objects: what they select, and their wire form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import JsonValue, dumps, loads
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Requirement, Selector
from metaloop.common.related_query import ANYWHERE, InNamespace, InNamespacesWith, RelatedQuery, Where

CONFIG_MAPS = ResourceId("v1", "configmaps")

words = st.text(max_size=5)
selectors = st.lists(st.builds(Requirement, words, st.just("In"), st.lists(words, min_size=1, max_size=3).map(tuple)), max_size=3).map(
    lambda requirements: Selector(tuple(requirements))
)
wheres = st.just(ANYWHERE) | st.builds(InNamespace, words) | st.builds(InNamespacesWith, selectors)
queries = st.builds(
    RelatedQuery, resource=st.just(CONFIG_MAPS), where=wheres, labels=selectors, names=st.frozensets(words, max_size=3), watched=words
)


@given(queries)
def test_a_query_survives_the_wire(query: RelatedQuery):
    assert RelatedQuery.from_wire(loads(dumps(query.to_wire()))) == query


@given(queries)
def test_a_query_of_an_older_reconciler_covers_all_objects(query: RelatedQuery):
    older = RelatedQuery.from_wire(query.to_wire()[:-1])

    assert (older.watched, older.names) == ("", query.names)


def test_without_names_the_labels_decide():
    query = RelatedQuery(resource=CONFIG_MAPS, labels=Selector((Requirement("app", "In", ("a",)),)))

    assert query.selects(name="any", labels={"app": "a"})
    assert not query.selects(name="any", labels={})


def test_names_select_only_those():
    query = RelatedQuery(resource=CONFIG_MAPS, names=frozenset({"a", "b"}))

    assert query.selects(name="a", labels={})
    assert not query.selects(name="c", labels={})


RED = InNamespacesWith(Selector((Requirement("color", "In", ("red",)),)))


@pytest.mark.parametrize(
    ("where", "namespace", "labels", "expected"),
    [
        (ANYWHERE, "blue", {}, True),
        (ANYWHERE, "", {}, True),
        (InNamespace("blue"), "blue", {}, True),
        (InNamespace("blue"), "red", {}, False),
        (InNamespace("blue"), "", {}, True),
        (RED, "any", {"color": "red"}, True),
        (RED, "any", {"color": "blue"}, False),
        (RED, "", {"color": "red"}, False),
    ],
)
def test_query_reaches_the_namespaces_that_it_names_or_selects(*, where: Where, namespace: str, labels: dict[str, str], expected: bool):
    assert RelatedQuery(resource=CONFIG_MAPS, where=where).reaches(namespace, labels) is expected


@pytest.mark.parametrize(
    "wire",
    [
        None,
        [],
        "nonsense",
        [["v1", "configmaps"], [], []],
        [["v1"], [], [], []],
        [["v1", "configmaps"], ["elsewhere", "x"], [], []],
        [["v1", "configmaps"], ["name", 1], [], []],
        [["v1", "configmaps"], [], [["app", "In"]], []],
        [["v1", "configmaps"], [], [], "names"],
    ],
    ids=repr,
)
def test_wire_form_of_something_else_is_refused(wire: JsonValue):
    with pytest.raises((ValueError, TypeError)):
        RelatedQuery.from_wire(wire)
