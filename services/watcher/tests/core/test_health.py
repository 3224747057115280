"""The health of a controller, and its status."""

from dataclasses import replace

import pytest

from metaloop.common.faults import AnyFault, Fault, Result, UnknownFault
from metaloop.common.json import JsonObject
from metaloop.common.testing.builders import job_key, sync_report
from metaloop.watcher.core.health import ControllerStats, HealthSummary, Problem, status_of, summary_of

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
SYNCED = HealthSummary(generation=3, reason="Synced", message="all parents are in sync", is_ready=True, parents=2)


def stats(**results: tuple[Result, AnyFault | None]) -> ControllerStats:
    found = ControllerStats(parents=2)
    for name, (result, fault) in results.items():
        found.record(replace(sync_report(job_key(name), "lease", result=result), fault=fault, message="it said no"))
    return found


def test_a_controller_whose_parents_are_in_sync_is_ready():
    assert summary_of(3, problem=None, stats=stats(a=("done", None))) == SYNCED


def test_a_controller_that_does_not_run_yet_is_starting():
    assert summary_of(1, problem=None, stats=None).reason == "Starting"


def test_a_restarted_controller_is_not_ready_before_all_parents_are_synced():
    found = ControllerStats()
    for name in ("a", "b"):
        found.add(job_key(name), ControllerStats())
    found.record(sync_report(job_key("a"), "lease"))

    unknown = summary_of(3, problem=None, stats=found)
    found.record(sync_report(job_key("b"), "lease"))

    assert (unknown.reason, unknown.is_ready, unknown.is_settled) == ("Starting", False, False)
    assert unknown.message == "1 of 2 parents have not been synced since it started"
    assert summary_of(3, problem=None, stats=found) == SYNCED


def test_a_parent_that_goes_is_waited_for_no_longer():
    found = ControllerStats()
    found.add(job_key("a"), ControllerStats())

    found.forget(job_key("a"))

    assert summary_of(3, problem=None, stats=found).reason == "Synced"


def test_problem_comes_before_everything_else():
    problem = Problem("CreateError", "WaitingForCRD", "waiting for things")

    found = summary_of(1, problem=problem, stats=stats(a=("retry", Fault.TIMED_OUT)))

    assert found == HealthSummary(generation=1, reason="WaitingForCRD", message="waiting for things", parents=2, failing=1)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.TIMED_OUT, "HookFailing"),
        (Fault.INVALID_ANSWER, "HookFailing"),
        (Fault.FORBIDDEN, "SyncFailing"),
        (Fault.NAME_TAKEN, "SyncFailing"),
        (Fault.CRASHED, "SyncFailing"),
        (UnknownFault("Invented"), "SyncFailing"),
    ],
)
def test_a_failing_parent_is_named_with_whose_fault_it_is(fault: AnyFault, expected: str):
    found = summary_of(3, problem=None, stats=stats(b=("retry", fault), a=("rejected", fault)))

    assert found == HealthSummary(generation=3, reason=expected, message="default/a: it said no", parents=2, failing=2)


def test_a_parent_that_is_in_sync_again_does_not_fail_any_more():
    found = stats(a=("retry", Fault.TIMED_OUT))

    found.record(sync_report(job_key("a"), "lease"))

    assert found.failing == {}


@pytest.mark.parametrize(
    ("result", "fault"),
    [
        ("throttled", Fault.WEBHOOK_BUSY),
        ("throttled", Fault.WORKER_STOPPED),
        ("retry", Fault.CONFLICT),
        ("retry", Fault.LEASE_LOST),
    ],
)
def test_what_mends_itself_with_the_next_try_is_no_failure(result: Result, fault: AnyFault):
    assert stats(a=(result, fault)).failing == {}


def test_an_open_circuit_is_a_failure_at_once_and_throttling_the_second_time():
    busy = stats(a=("throttled", Fault.WEBHOOK_BUSY))
    assert busy.failing == {}

    busy.record(replace(sync_report(job_key("a"), "lease", result="throttled"), fault=Fault.WEBHOOK_BUSY, message="it asks for time"))

    assert summary_of(3, problem=None, stats=busy).reason == "HookThrottled"
    assert summary_of(3, problem=None, stats=stats(a=("throttled", Fault.CIRCUIT_OPEN))).reason == "HookThrottled"


def test_a_worker_that_stopped_twice_in_the_middle_is_no_failure():
    found = stats(a=("throttled", Fault.WORKER_STOPPED))

    found.record(replace(sync_report(job_key("a"), "lease", result="throttled"), fault=Fault.WORKER_STOPPED))

    assert found.failing == {}


def test_a_parent_that_is_no_more_does_not_fail():
    found = stats(a=("retry", Fault.TIMED_OUT))

    found.forget(job_key("a"))

    assert found.failing == {}


def test_a_status_says_generation_counts_and_condition():
    assert status_of(SYNCED, {}, at=NOW) == {
        "observedGeneration": 3,
        "parents": 2,
        "failingParents": 0,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "observedGeneration": 3,
                "reason": "Synced",
                "message": "all parents are in sync",
                "lastTransitionTime": NOW,
            }
        ],
    }


def test_a_condition_remembers_since_when_it_is_so():
    before = status_of(SYNCED, {}, at=THEN)

    assert status_of(SYNCED, before, at=NOW) == before
    changed = status_of(replace(SYNCED, is_ready=False), before, at=NOW)
    assert changed["conditions"][0]["lastTransitionTime"] == NOW  # type: ignore[index,call-overload]


def test_conditions_of_others_stay():
    theirs: JsonObject = {"type": "Audited", "status": "True"}

    status = status_of(SYNCED, {"conditions": [theirs, "nonsense"]}, at=NOW)

    assert isinstance(status["conditions"], list)
    assert status["conditions"][0] == theirs
    assert len(status["conditions"]) == 2


def test_a_paused_controller_has_a_condition_paused_beside_ready():
    summary = summary_of(3, problem=None, stats=ControllerStats(parents=2), is_paused=True)

    told = status_of(summary, {}, at="now")["conditions"]

    assert isinstance(told, list)
    assert [(each["type"], each["status"], each["reason"]) for each in told if isinstance(each, dict)] == [
        ("Ready", "True", "Synced"),
        ("Paused", "True", "PausedByAnnotation"),
    ]


def test_the_condition_paused_goes_with_the_pause():
    paused = status_of(summary_of(3, problem=None, stats=ControllerStats(), is_paused=True), {}, at="then")

    resumed = status_of(summary_of(3, problem=None, stats=ControllerStats()), paused, at="now")["conditions"]

    assert isinstance(resumed, list)
    assert [(each["type"], each["lastTransitionTime"]) for each in resumed if isinstance(each, dict)] == [("Ready", "then")]


def test_a_held_back_deletion_has_a_reason_of_its_own():
    summary = summary_of(3, problem=None, stats=stats(a=("retry", Fault.DELETION_HELD_BACK)))

    assert (summary.reason, summary.is_ready) == ("DeletionHeldBack", False)
