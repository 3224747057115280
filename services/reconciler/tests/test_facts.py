"""Facts that are remembered from one sync to the next."""

from metaloop.common.objects.resource import ResourceId
from metaloop.reconciler.core.steps import ConditionsUnsupported, PauseAnnounced
from metaloop.reconciler.facts import Facts

MOST = 10_000


def test_fact_is_known_from_when_it_is_learned_until_it_is_forgotten():
    facts, fact = Facts(), PauseAnnounced("uid")

    before = fact in facts
    facts.learn(fact)
    learned = fact in facts
    facts.forget(fact)

    assert (before, learned, fact in facts) == (False, True, False)


def test_facts_of_different_kinds_and_objects_are_told_apart():
    facts = Facts()
    facts.learn(PauseAnnounced("a"))

    assert PauseAnnounced("b") not in facts
    assert ConditionsUnsupported(ResourceId("v1", "a")) not in facts


def test_forgetting_what_was_never_learned_changes_nothing():
    facts = Facts()
    facts.learn(PauseAnnounced("a"))

    facts.forget(PauseAnnounced("b"))

    assert PauseAnnounced("a") in facts


def test_oldest_fact_makes_room_when_there_are_too_many():
    facts = Facts()

    for number in range(MOST + 1):
        facts.learn(PauseAnnounced(str(number)))

    assert PauseAnnounced("0") not in facts
    assert PauseAnnounced("1") in facts
    assert PauseAnnounced(str(MOST)) in facts


def test_fact_that_is_learned_twice_takes_one_place():
    facts = Facts()
    facts.learn(PauseAnnounced("kept"))

    for number in range(MOST - 1):
        facts.learn(PauseAnnounced(str(number)))
        facts.learn(PauseAnnounced(str(number)))

    assert PauseAnnounced("kept") in facts
