"""States, reasons and conditions; timeouts; how soon a component is looked at again."""

from datetime import UTC, datetime, timedelta

import pytest
from components import NOW, TIMESTAMP

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.progress import (
    NOTHING_STATED,
    HookStatus,
    Progress,
    State,
    Verdict,
    next_look_seconds,
    not_ready,
    progress_of,
    status_of,
)

EARLIER = "2026-01-02T11:00:00Z"
READY = Verdict(state="Ready", reason="Ready", message="all objects are ready")
PROCESSING = Verdict(state="Processing", reason="Processing", message="waiting for x")
PROGRESS = Progress(digest="d", revision=1)


def component(status: JsonObject | None = None, *, generation: int = 1) -> JsonObject:
    """A component with this status."""
    return {"metadata": {"name": "c", "generation": generation}, "status": status or {}}


def status(
    former: JsonObject | None = None,
    verdict: Verdict = READY,
    progress: Progress = PROGRESS,
    *,
    stated: JsonObject | None = None,
    generation: int = 1,
) -> JsonObject:
    """The status that follows from a former one."""
    of_hooks = NOTHING_STATED if stated is None else NOTHING_STATED.whole(stated)
    return status_of(component(former, generation=generation), of_hooks, verdict, progress, now=NOW)


# -- from one pass to the next -----------------------------------------------------------------------------------------


def test_first_digest_is_revision_one():
    assert progress_of({}, "d") == Progress(digest="d", revision=1)


def test_same_digest_goes_on_where_it_was():
    former: JsonObject = {"processingDigest": "d", "revision": 3, "processingSince": EARLIER}

    assert progress_of(former, "d") == Progress(digest="d", revision=3, since=EARLIER)


def test_new_digest_is_a_new_revision_and_begins_anew():
    former: JsonObject = {"processingDigest": "c", "revision": 3, "processingSince": EARLIER}

    assert progress_of(former, "d") == Progress(digest="d", revision=4)


def test_processing_begins_once():
    began = PROGRESS.processing(NOW)

    assert began.since == TIMESTAMP
    assert began.processing(NOW + timedelta(hours=1)) == began
    assert began.ready() == PROGRESS


@pytest.mark.parametrize(("since", "timeout", "is_over"), [("", 1, False), (EARLIER, 3600, True), (EARLIER, 3601, False), ("x", 1, False)])
def test_component_times_out_after_its_timeout(since: str, timeout: float, is_over: bool):
    assert Progress(digest="d", revision=1, since=since).is_timed_out(NOW, timeout) is is_over


def test_component_that_is_not_ready_says_what_it_waits_for():
    verdict = not_ready(PROGRESS, ["a", "b", "c", "d", "e"], now=NOW, timeout_seconds=1)

    assert verdict == Verdict(state="Processing", reason="Processing", message="Waiting for a; b; c; and 2 more")


def test_component_that_is_timed_out_is_in_error():
    verdict = not_ready(Progress(digest="d", revision=1, since=EARLIER), ["a"], now=NOW, timeout_seconds=60)

    assert verdict == Verdict(state="Error", reason="Timeout", message="Not ready after 60 s: a")


def test_looks_become_rarer_as_time_passes():
    looks, elapsed = [], 0.0
    for _ in range(52):
        looks.append(next_look_seconds(elapsed))
        elapsed += looks[-1]

    assert looks == [0.05, 0.1, 0.2, 0.4, 0.8, *[1.0] * 15, *[2.0] * 30, 10.0, 10.0]


# -- the status --------------------------------------------------------------------------------------------------------


def test_status_of_a_ready_component():
    assert status() == {
        "observedGeneration": 1,
        "appliedGeneration": 1,
        "lastAppliedAt": TIMESTAMP,
        "processingDigest": "d",
        "revision": 1,
        "state": "Ready",
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Ready",
                "message": "All objects are ready",
                "observedGeneration": 1,
                "lastTransitionTime": TIMESTAMP,
            }
        ],
    }


def test_status_of_a_component_at_rest_does_not_change():
    former = status()

    assert status_of(component(former), NOTHING_STATED, READY, PROGRESS, now=NOW + timedelta(hours=1)) == former


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("Ready", "True"),
        ("Error", "False"),
        ("Pending", "Unknown"),
        ("Processing", "Unknown"),
        ("Deleting", "Unknown"),
        ("DeletionPending", "Unknown"),
    ],
)
def test_condition_ready_follows_from_the_state(state: State, expected: str):
    [condition] = unstructured.child_objects(status(verdict=Verdict(state=state, reason="r")), "conditions")

    assert (condition["status"], condition["reason"]) == (expected, "r")


def test_transition_time_changes_with_the_status_of_the_condition_only():
    before = status_of(component(), NOTHING_STATED, PROCESSING, PROGRESS, now=datetime(2026, 1, 1, tzinfo=UTC))

    [still] = unstructured.child_objects(status(before, Verdict(state="Pending", reason="Retrying")), "conditions")
    [then] = unstructured.child_objects(status(before), "conditions")

    assert (still["lastTransitionTime"], then["lastTransitionTime"]) == ("2026-01-01T00:00:00Z", TIMESTAMP)


def test_fields_of_the_hook_stand_beside_ours():
    stated: JsonObject = {"url": "http://x", "state": "mine", "inventory": [], "revision": 99}

    assert {name: status(stated=stated)[name] for name in ("url", "state", "revision")} == {
        "url": "http://x",
        "state": "Ready",
        "revision": 1,
    }


def test_conditions_of_the_hook_stand_beside_ours():
    stated: JsonObject = {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Warm", "status": "True"}]}

    conditions = unstructured.child_objects(status(stated=stated), "conditions")

    assert [(each["type"], each["status"]) for each in conditions] == [("Warm", "True"), ("Ready", "True")]


def test_fields_stay_while_no_hook_has_answered():
    former = status(stated={"url": "http://x", "conditions": [{"type": "Warm", "status": "True"}]})

    after = status(former, Verdict(state="Error", reason="TimedOut"))

    assert after["url"] == "http://x"
    assert [each["type"] for each in unstructured.child_objects(after, "conditions")] == ["Warm", "Ready"]


def test_field_goes_that_the_hook_no_longer_states():
    assert "url" not in status(status(stated={"url": "http://x"}), stated={})


def test_generation_that_was_applied_is_that_of_the_last_ready_pass():
    former = status()

    failed = status(former, Verdict(state="Error", reason="Invalid"), generation=2)
    assert (failed["observedGeneration"], failed["appliedGeneration"]) == (2, 1)

    assert status(failed, generation=2)["appliedGeneration"] == 2


def test_status_says_since_when_a_component_is_processed():
    assert status(verdict=PROCESSING, progress=PROGRESS.processing(NOW))["processingSince"] == TIMESTAMP
    assert "processingSince" not in status()


@pytest.mark.parametrize(
    ("stated", "over"),
    [
        (NOTHING_STATED, {"a": 1, "b": 2}),
        (NOTHING_STATED.merged({"b": 3}), {"a": 1, "b": 3}),
        (NOTHING_STATED.merged({"b": None}), {"a": 1}),
        (NOTHING_STATED.merged({"b": 3, "c": 4}).whole({"b": 5}), {"b": 5, "c": 4}),
        (NOTHING_STATED.whole({"b": 5}).merged({"b": 6}), {"b": 6}),
        (NOTHING_STATED.whole({}), {}),
        (NOTHING_STATED.merged({"state": "mine", "inventory": []}), {"a": 1, "b": 2}),
    ],
)
def test_hooks_add_to_the_status_and_the_generator_replaces_what_was_there(stated: HookStatus, over: JsonObject):
    assert stated.over({"a": 1, "b": 2, "state": "Ready"}) == over
