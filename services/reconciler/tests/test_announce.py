"""How a finished sync is announced: one log line, counters, and an event if somebody has to fix something."""

from collections import Counter
from copy import deepcopy
from dataclasses import replace

import pytest
from builders import THINGS, a_parent
from fake_hooks import FakeRecorder
from structlog.testing import capture_logs

from metaloop.common.faults import Fault
from metaloop.common.job import ControllerId, JobKey
from metaloop.reconciler.announce import FinishedSync, announce
from metaloop.reconciler.core.model import Outcome
from metaloop.reconciler.sync_numbers import numbers

KEY = JobKey(ControllerId("CompositeController", "things"), THINGS.id, "default", "parent")
DONE = Outcome(result="done")
FAILED = Outcome(result="retry", fault=Fault.INVALID_ANSWER, message="it is wrong")


def finished(outcome: Outcome = DONE, *, actions: dict[str, int] | None = None, unknown_keys: tuple[str, ...] = ()) -> FinishedSync:
    """A sync that ended with this outcome."""
    return FinishedSync(key=KEY, parent=a_parent(), outcome=outcome, actions=Counter(actions), seconds=0.5, unknown_keys=unknown_keys)


def test_a_part_is_named_in_the_line_and_in_the_event():
    recorder = FakeRecorder()

    with capture_logs() as lines:
        announce(replace(finished(FAILED), part="Pod default/a"), recorder)

    assert [line["part"] for line in lines] == ["Pod default/a"]
    assert [message for *_, message in recorder.told] == ["Sync error of Pod default/a: it is wrong"]


@pytest.mark.parametrize(
    ("sync", "level"),
    [
        (finished(), "debug"),
        (finished(actions={"CreateChild": 2}), "info"),
        (finished(unknown_keys=("childern",)), "info"),
        (finished(Outcome(result="retry", fault=Fault.CONFLICT, message="changed")), "info"),
        (finished(Outcome(result="retry", fault=Fault.UNAVAILABLE, message="away")), "warning"),
        (finished(FAILED), "warning"),
    ],
)
def test_a_line_is_as_loud_as_its_sync_deserves(sync: FinishedSync, level: str):
    with capture_logs() as lines:
        announce(sync, FakeRecorder())

    assert [(line["event"], line["log_level"]) for line in lines] == [("sync.done", level)]


def test_the_line_holds_everything_on_the_sync():
    with capture_logs() as lines:
        announce(finished(FAILED, actions={"Status": 1}), FakeRecorder())

    [line] = lines
    assert line == {
        "event": "sync.done",
        "log_level": "warning",
        "controller": "CompositeController/things",
        "parent": "default/parent",
        "outcome": "retry",
        "actions": {"Status": 1},
        "seconds": 0.5,
        "reason": "InvalidAnswer",
        "error": "it is wrong",
    }


def test_event_on_the_parent_says_what_is_wrong():
    recorder = FakeRecorder()

    announce(finished(FAILED), recorder)

    assert recorder.told == [("Warning", "SyncError", "Sync error: it is wrong")]


@pytest.mark.parametrize("fault", [Fault.CONFLICT, Fault.UNAVAILABLE])
def test_parents_owner_is_not_told_what_is_not_theirs_to_mend(fault: Fault):
    recorder = FakeRecorder()

    announce(finished(Outcome(result="retry", fault=fault, message="y")), recorder)

    assert recorder.told == []


def test_deletion_that_waits_for_a_confirmation_has_an_event_of_its_own():
    recorder = FakeRecorder()

    announce(finished(Outcome(result="retry", fault=Fault.DELETION_HELD_BACK, message="3 of 3")), recorder)

    assert recorder.told == [("Warning", "DeletionHeldBack", "3 of 3")]


def test_sync_is_counted_with_its_outcome_its_writes_and_its_times():
    before = deepcopy(numbers.of(KEY.controller))

    announce(replace(finished(FAILED, actions={"CreateChild": 3}), change_to_hook_seconds=0.25), FakeRecorder())

    syncs = numbers.of(KEY.controller)
    assert syncs.results["retry"] == before.results["retry"] + 1
    assert syncs.writes["CreateChild"] == before.writes["CreateChild"] + 3
    assert (syncs.seconds.sum, syncs.change_to_hook.sum) == (before.seconds.sum + 0.5, before.change_to_hook.sum + 0.25)


def test_sync_that_no_change_caused_says_nothing_of_their_latency():
    before = numbers.of(KEY.controller).change_to_hook.count

    announce(finished(), FakeRecorder())

    assert numbers.of(KEY.controller).change_to_hook.count == before
