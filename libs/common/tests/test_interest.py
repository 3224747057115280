"""Interests: what they select, and their way over the wire."""

from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.interest import ANYWHERE, InNamespace, InNamespacesWith, Interest
from metaloop.common.json import dumps, loads
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Requirement, Selector

CONFIG_MAPS = ResourceId("v1", "configmaps")

words = st.text(max_size=5)
selectors = st.lists(st.builds(Requirement, words, st.just("In"), st.lists(words, min_size=1, max_size=3).map(tuple)), max_size=3).map(
    lambda requirements: Selector(tuple(requirements))
)
places = st.just(ANYWHERE) | st.builds(InNamespace, words) | st.builds(InNamespacesWith, selectors)
interests = st.builds(Interest, resource=st.just(CONFIG_MAPS), where=places, labels=selectors, names=st.frozensets(words, max_size=3))


@given(interests)
def test_an_interest_survives_the_wire(interest: Interest):
    assert Interest.from_wire(loads(dumps(interest.to_wire()))) == interest


def test_without_names_the_labels_decide():
    interest = Interest(resource=CONFIG_MAPS, labels=Selector((Requirement("app", "In", ("a",)),)))

    assert interest.selects(name="any", labels={"app": "a"})
    assert not interest.selects(name="any", labels={})


def test_names_select_only_those():
    interest = Interest(resource=CONFIG_MAPS, names=frozenset({"a", "b"}))

    assert interest.selects(name="a", labels={})
    assert not interest.selects(name="c", labels={})
