"""Subscribers of an object: exactly those whose query selects it, however they are indexed."""

from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Requirement, Selector
from metaloop.common.related_query import ANYWHERE, InNamespace, InNamespacesWith, RelatedQuery
from metaloop.watcher.core.subscription_index import Subscription, SubscriptionIndex

CONFIG_MAPS = ResourceId("v1", "configmaps")

words = st.sampled_from("ab")
labels = st.dictionaries(words, words, max_size=2)
requirements = st.builds(
    Requirement, words, st.sampled_from(["In", "NotIn"]), st.lists(words, min_size=1, max_size=2).map(tuple)
) | st.builds(Requirement, words, st.sampled_from(["Exists", "DoesNotExist"]))
selectors = st.lists(requirements, max_size=2).map(lambda found: Selector(tuple(found)))
wheres = st.just(ANYWHERE) | st.builds(InNamespace, words) | st.builds(InNamespacesWith, selectors)
queries = st.builds(RelatedQuery, resource=st.just(CONFIG_MAPS), where=wheres, labels=selectors, names=st.frozensets(words, max_size=2))


def parent(number: int) -> JobKey:
    """One of many parents."""
    return JobKey(ControllerId("CompositeController", "c"), ResourceId("ex.io/v1", "hellos"), "n", str(number))


def subscribed(*wanted: RelatedQuery) -> SubscriptionIndex:
    """The subscriptions of as many parents, each to one query."""
    index = SubscriptionIndex()
    for number, query in enumerate(wanted):
        index.add(Subscription(parent(number), query))
    return index


@given(st.lists(queries, max_size=6), st.sampled_from(["", "a", "b"]), words, labels, labels)
def test_an_object_finds_exactly_the_subscribers_whose_queries_select_it(
    wanted: list[RelatedQuery], namespace: str, name: str, own: dict[str, str], of_namespace: dict[str, str]
):
    expected = {
        parent(number)
        for number, query in enumerate(wanted)
        if query.selects(name=name, labels=own) and query.reaches(namespace, of_namespace)
    }

    assert set(subscribed(*wanted).subscribers_of((namespace, name), own, of_namespace)) == expected


@given(st.lists(queries, max_size=6), st.data())
def test_a_removed_subscription_is_not_found(wanted: list[RelatedQuery], data: st.DataObject):
    added = [Subscription(parent(number), query) for number, query in enumerate(wanted)]
    index = SubscriptionIndex()
    for subscription in added:
        index.add(subscription)

    for subscription in data.draw(st.permutations(added)):
        index.remove(subscription)
        assert subscription not in set(index.by_namespace_labels())

    assert not index


def test_subscriptions_by_namespace_labels_are_listed():
    by_labels = RelatedQuery(resource=CONFIG_MAPS, where=InNamespacesWith(Selector((Requirement("team", "In", ("blue",)),))))
    index = subscribed(by_labels, RelatedQuery(resource=CONFIG_MAPS, where=InNamespace("n")))

    assert [subscription.query for subscription in index.by_namespace_labels()] == [by_labels]
