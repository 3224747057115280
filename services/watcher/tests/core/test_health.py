"""How a controller fares, and how its status says so."""

from dataclasses import replace

import pytest

from metaloop.common.faults import AnyFault, Fault, Result, UnknownFault
from metaloop.common.json import JsonObject
from metaloop.common.testing.builders import job_key, sync_report
from metaloop.watcher.core.health import Health, Standing, Trouble, health_of, status_of

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
SYNCED = Health(generation=3, reason="Synced", message="all parents are in sync", is_ready=True, parents=2)


def standing(**results: tuple[Result, AnyFault | None]) -> Standing:
    found = Standing(parents=2)
    for name, (result, fault) in results.items():
        found.hear(replace(sync_report(job_key(name), "lease", result=result), fault=fault, message="it said no"))
    return found


def test_a_controller_whose_parents_are_in_sync_is_ready():
    assert health_of(3, trouble=None, standing=standing(a=("done", None))) == SYNCED


def test_a_controller_that_does_not_run_yet_is_starting():
    assert health_of(1, trouble=None, standing=None).reason == "Starting"


def test_a_controller_that_was_restarted_does_not_say_that_all_is_well_before_it_knows():
    found = Standing()
    for name in ("a", "b"):
        found.take_over(job_key(name), Standing())
    found.hear(sync_report(job_key("a"), "lease"))

    unknown = health_of(3, trouble=None, standing=found)
    found.hear(sync_report(job_key("b"), "lease"))

    assert (unknown.reason, unknown.is_ready, unknown.is_settled) == ("Starting", False, False)
    assert unknown.message == "1 of 2 parents have not been synced since it started"
    assert health_of(3, trouble=None, standing=found) == SYNCED


def test_a_parent_that_goes_is_waited_for_no_longer():
    found = Standing()
    found.take_over(job_key("a"), Standing())

    found.forget(job_key("a"))

    assert health_of(3, trouble=None, standing=found).reason == "Synced"


def test_trouble_comes_before_everything_else():
    trouble = Trouble("CreateError", "WaitingForCRD", "waiting for things")

    found = health_of(1, trouble=trouble, standing=standing(a=("retry", Fault.TIMED_OUT)))

    assert found == Health(generation=1, reason="WaitingForCRD", message="waiting for things", parents=2, failing=1)


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
    found = health_of(3, trouble=None, standing=standing(b=("retry", fault), a=("rejected", fault)))

    assert found == Health(generation=3, reason=expected, message="default/a: it said no", parents=2, failing=2)


def test_a_parent_that_is_in_sync_again_does_not_fail_any_more():
    found = standing(a=("retry", Fault.TIMED_OUT))

    found.hear(sync_report(job_key("a"), "lease"))

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
    assert standing(a=(result, fault)).failing == {}


def test_a_circuit_that_is_open_is_told_at_once_and_a_busy_webhook_when_it_lasts():
    busy = standing(a=("throttled", Fault.WEBHOOK_BUSY))
    assert busy.failing == {}

    busy.hear(replace(sync_report(job_key("a"), "lease", result="throttled"), fault=Fault.WEBHOOK_BUSY, message="it asks for time"))

    assert health_of(3, trouble=None, standing=busy).reason == "HookThrottled"
    assert health_of(3, trouble=None, standing=standing(a=("throttled", Fault.CIRCUIT_OPEN))).reason == "HookThrottled"


def test_a_worker_that_stopped_twice_in_the_middle_is_no_failure():
    found = standing(a=("throttled", Fault.WORKER_STOPPED))

    found.hear(replace(sync_report(job_key("a"), "lease", result="throttled"), fault=Fault.WORKER_STOPPED))

    assert found.failing == {}


def test_a_parent_that_is_no_more_does_not_fail():
    found = standing(a=("retry", Fault.TIMED_OUT))

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


def test_paused_controller_says_so_beside_how_it_fares():
    health = health_of(3, trouble=None, standing=Standing(parents=2), is_paused=True)

    told = status_of(health, {}, at="now")["conditions"]

    assert isinstance(told, list)
    assert [(each["type"], each["status"], each["reason"]) for each in told if isinstance(each, dict)] == [
        ("Ready", "True", "Synced"),
        ("Paused", "True", "PausedByAnnotation"),
    ]


def test_condition_of_a_pause_goes_with_it():
    paused = status_of(health_of(3, trouble=None, standing=Standing(), is_paused=True), {}, at="then")

    resumed = status_of(health_of(3, trouble=None, standing=Standing()), paused, at="now")["conditions"]

    assert isinstance(resumed, list)
    assert [(each["type"], each["lastTransitionTime"]) for each in resumed if isinstance(each, dict)] == [("Ready", "then")]


def test_held_back_deletion_is_told_by_its_own_name():
    health = health_of(3, trouble=None, standing=standing(a=("retry", Fault.DELETION_HELD_BACK)))

    assert (health.reason, health.is_ready) == ("DeletionHeldBack", False)
