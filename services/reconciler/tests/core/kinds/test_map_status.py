"""The status of a MapController's parent: counts, failing inputs, and the condition Ready."""

import pytest
from builders import a_parent

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.kinds.map_status import next_status, with_counts

AT, EARLIER = "2026-01-02T03:04:05Z", "2026-01-01T00:00:00Z"
NONE: JsonObject = {"count": 0, "inputs": []}
ONE: JsonObject = {
    "count": 1,
    "inputs": [{"resource": "pods", "namespace": "n", "name": "x", "mapKey": "k", "reason": "TimedOut", "message": "it hangs"}],
}


def summary(*, failing: JsonObject = NONE, pending: int = 0, inputs: int = 2) -> JsonObject:
    """What the watcher counted."""
    return {
        "inputs": {"pods": {"total": inputs}},
        "outputs": {"configmaps": {"total": 3, "ready": 1}},
        "failing": failing,
        "pending": pending,
    }


def status(former: JsonObject | None = None, **counted: object) -> JsonObject:
    """The next status of a parent of generation 3."""
    return next_status(a_parent(status=former or {}), summary(**counted), at=AT)  # type: ignore[arg-type]


def ready_in(found: JsonObject) -> JsonObject:
    """The condition Ready."""
    [ready] = [each for each in unstructured.child_objects(found, "conditions") if each["type"] == "Ready"]
    return ready


def outline(found: JsonObject) -> tuple[object, object, object]:
    """Status and reason of the condition Ready, and how many inputs fail."""
    ready = ready_in(found)
    return ready["status"], ready["reason"], unstructured.child_object(found, "failing")["count"]


def test_counts_are_shown_as_they_are():
    found = status()

    assert found["inputs"] == {"pods": {"total": 2}}
    assert found["outputs"] == {"configmaps": {"total": 3, "ready": 1}}
    assert (found["failing"], found["observedGeneration"]) == (NONE, 3)


def test_parent_is_ready_when_all_inputs_are_mapped():
    assert outline(status()) == ("True", "Mapped", 0)


def test_parent_with_failing_inputs_is_not_ready_and_the_first_is_named():
    found = status(failing=ONE)

    assert outline(found) == ("False", "InputsFailing", 1)
    assert ready_in(found)["message"] == "1 input fails; pods n/x: it hangs"


def test_new_parent_is_not_ready_until_all_inputs_are_mapped():
    assert outline(status(pending=2)) == ("False", "Mapping", 0)


def test_restart_keeps_what_was_known():
    before = status(failing=ONE)

    assert with_counts(a_parent(status=before), summary=summary(pending=2), at=AT) is None


def test_new_generation_is_not_ready_until_all_inputs_are_mapped():
    before = {**status(), "observedGeneration": 2}

    assert outline(status(before, pending=1)) == ("False", "Mapping", 0)


def test_status_that_is_as_it_should_be_is_not_written():
    before = status()

    assert with_counts(a_parent(status=before), summary=summary(), at="2027-01-01T00:00:00Z") is None


@pytest.mark.parametrize(("failing", "since"), [(NONE, EARLIER), (ONE, AT)])
def test_transition_time_changes_with_the_status_of_the_condition(failing: JsonObject, since: str):
    before = next_status(a_parent(), summary(), at=EARLIER)

    assert ready_in(status(before, failing=failing))["lastTransitionTime"] == since


def test_conditions_and_fields_of_others_stay():
    theirs: JsonObject = {"type": "Theirs", "status": "True"}
    paused: JsonObject = {"type": "Paused", "status": "True"}

    found = status({"theirs": 1, "conditions": [theirs, paused]})

    assert found["theirs"] == 1
    assert [each["type"] for each in unstructured.child_objects(found, "conditions")] == ["Theirs", "Ready"]
