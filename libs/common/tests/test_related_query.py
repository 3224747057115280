"""Queries for related objects: what they select, and their wire form."""

from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import dumps, loads
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Requirement, Selector
from metaloop.common.related_query import ANYWHERE, InNamespace, InNamespacesWith, RelatedQuery

CONFIG_MAPS = ResourceId("v1", "configmaps")

words = st.text(max_size=5)
selectors = st.lists(st.builds(Requirement, words, st.just("In"), st.lists(words, min_size=1, max_size=3).map(tuple)), max_size=3).map(
    lambda requirements: Selector(tuple(requirements))
)
wheres = st.just(ANYWHERE) | st.builds(InNamespace, words) | st.builds(InNamespacesWith, selectors)
queries = st.builds(RelatedQuery, resource=st.just(CONFIG_MAPS), where=wheres, labels=selectors, names=st.frozensets(words, max_size=3))


@given(queries)
def test_a_query_survives_the_wire(query: RelatedQuery):
    assert RelatedQuery.from_wire(loads(dumps(query.to_wire()))) == query


def test_without_names_the_labels_decide():
    query = RelatedQuery(resource=CONFIG_MAPS, labels=Selector((Requirement("app", "In", ("a",)),)))

    assert query.selects(name="any", labels={"app": "a"})
    assert not query.selects(name="any", labels={})


def test_names_select_only_those():
    query = RelatedQuery(resource=CONFIG_MAPS, names=frozenset({"a", "b"}))

    assert query.selects(name="a", labels={})
    assert not query.selects(name="c", labels={})
