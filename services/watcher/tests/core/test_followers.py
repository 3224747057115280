"""Who follows an object: exactly those whose interests select it, however they are kept."""

from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.interest import ANYWHERE, InNamespace, InNamespacesWith, Interest
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Requirement, Selector
from metaloop.watcher.core.followers import Follower, Followers

CONFIG_MAPS = ResourceId("v1", "configmaps")

words = st.sampled_from("ab")
labels = st.dictionaries(words, words, max_size=2)
requirements = st.builds(
    Requirement, words, st.sampled_from(["In", "NotIn"]), st.lists(words, min_size=1, max_size=2).map(tuple)
) | st.builds(Requirement, words, st.sampled_from(["Exists", "DoesNotExist"]))
selectors = st.lists(requirements, max_size=2).map(lambda found: Selector(tuple(found)))
places = st.just(ANYWHERE) | st.builds(InNamespace, words) | st.builds(InNamespacesWith, selectors)
interests = st.builds(Interest, resource=st.just(CONFIG_MAPS), where=places, labels=selectors, names=st.frozensets(words, max_size=2))


def parent(number: int) -> JobKey:
    """One of many parents."""
    return JobKey(ControllerId("CompositeController", "c"), ResourceId("ex.io/v1", "hellos"), "n", str(number))


def following(*wanted: Interest) -> Followers:
    """As many parents, each following one interest."""
    followers = Followers()
    for number, interest in enumerate(wanted):
        followers.add(Follower(parent(number), interest))
    return followers


@given(st.lists(interests, max_size=6), st.sampled_from(["", "a", "b"]), words, labels, labels)
def test_an_object_finds_exactly_those_whose_interests_select_it(
    wanted: list[Interest], namespace: str, name: str, own: dict[str, str], of_namespace: dict[str, str]
):
    expected = {
        parent(number)
        for number, interest in enumerate(wanted)
        if interest.selects(name=name, labels=own) and interest.reaches(namespace, of_namespace)
    }

    assert set(following(*wanted).of((namespace, name), own, of_namespace)) == expected


@given(st.lists(interests, max_size=6), st.data())
def test_who_is_removed_is_found_no_more(wanted: list[Interest], data: st.DataObject):
    added = [Follower(parent(number), interest) for number, interest in enumerate(wanted)]
    followers = Followers()
    for follower in added:
        followers.add(follower)

    for follower in data.draw(st.permutations(added)):
        followers.remove(follower)
        assert follower not in set(followers.by_namespace_labels())

    assert not followers


def test_a_namespaces_labels_matter_to_those_who_look_by_them():
    by_labels = Interest(resource=CONFIG_MAPS, where=InNamespacesWith(Selector((Requirement("team", "In", ("blue",)),))))
    followers = following(by_labels, Interest(resource=CONFIG_MAPS, where=InNamespace("n")))

    assert [follower.interest for follower in followers.by_namespace_labels()] == [by_labels]
