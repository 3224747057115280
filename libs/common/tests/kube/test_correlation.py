import pytest

from metaloop.common.kube.correlation import (
    BURST,
    REFILL_SECONDS,
    SIMILAR_MESSAGES,
    SIMILAR_SECONDS,
    Correlator,
    Occurrence,
    Subject,
    event_name,
)

NOON = 1_800_000_000.0
SUBJECT = Subject("v1", "Pod", "default", "a", "uid-a")


def occurrence(message: str = "m", *, reason: str = "SyncError", subject: Subject = SUBJECT) -> Occurrence:
    return Occurrence(subject=subject, type="Warning", reason=reason, message=message)


def test_first_occurrence_is_an_event_of_its_own():
    told = Correlator().correlate(occurrence(), now=NOON)

    assert told is not None
    assert (told.message, told.count, told.first_seen, told.last_seen) == ("m", 1, NOON, NOON)


def test_repetition_counts_on_the_same_event():
    correlator = Correlator()
    first = correlator.correlate(occurrence(), now=NOON)
    again = correlator.correlate(occurrence(), now=NOON + 60)

    assert first is not None
    assert again is not None
    assert again.name == first.name
    assert (again.count, again.first_seen, again.last_seen) == (2, NOON, NOON + 60)


@pytest.mark.parametrize(
    "other",
    [occurrence("other"), occurrence(reason="CreateError"), occurrence(subject=Subject("v1", "Pod", "default", "a", "uid-of-a-later-a"))],
)
def test_different_occurrence_is_another_event(other: Occurrence):
    correlator = Correlator()
    first = correlator.correlate(occurrence(), now=NOON)
    second = correlator.correlate(other, now=NOON + 1)

    assert first is not None
    assert second is not None
    assert second.name != first.name
    assert second.count == 1


def test_after_ten_different_messages_one_event_stands_for_the_rest():
    correlator = Correlator()
    told = [correlator.correlate(occurrence(f"m{index}"), now=NOON + index) for index in range(SIMILAR_MESSAGES + 3)]

    combined = [one for one in told[SIMILAR_MESSAGES:] if one]
    assert [one.message for one in combined] == [f"(combined from similar events): m{index}" for index in range(10, 13)]
    assert [one.count for one in combined] == [1, 2, 3]
    assert len({one.name for one in combined}) == 1


def test_similar_messages_long_after_each_other_are_not_combined():
    correlator = Correlator()
    told = [correlator.correlate(occurrence(f"m{index}"), now=NOON + index * (SIMILAR_SECONDS + 1)) for index in range(20)]

    assert [one.message for one in told if one] == [f"m{index}" for index in range(20)]


def test_object_gets_a_burst_of_events_and_one_more_each_five_minutes():
    correlator = Correlator()

    def tell(now: float) -> bool:
        return correlator.correlate(occurrence(), now=now) is not None

    assert [tell(NOON) for _ in range(BURST + 1)] == [True] * BURST + [False]
    assert not tell(NOON + REFILL_SECONDS - 1)
    assert tell(NOON + REFILL_SECONDS)
    assert not tell(NOON + REFILL_SECONDS)


def test_unwritten_occurrences_count_in_the_next_event():
    correlator = Correlator()
    for _ in range(BURST + 5):
        correlator.correlate(occurrence(), now=NOON)
    told = correlator.correlate(occurrence(), now=NOON + REFILL_SECONDS)

    assert told is not None
    assert told.count == BURST + 6


def test_rate_is_limited_per_object():
    correlator = Correlator()
    for _ in range(BURST + 1):
        correlator.correlate(occurrence(), now=NOON)

    assert correlator.correlate(occurrence(subject=Subject("v1", "Pod", "default", "b", "uid-b")), now=NOON)


@pytest.mark.parametrize(
    ("object_name", "stem"), [("a.b-c", "a.b-c"), ("system:Admin", "system-admin"), ("x" * 253, "x" * 230), ("::", "object")]
)
def test_event_is_named_after_its_object(object_name: str, stem: str):
    assert event_name(object_name, 1.0) == f"{stem}.3b9aca00"
