"""What each failure means for the job, and who is told of it."""

import pytest

from metaloop.common.errors import (
    ApiStatus,
    Conflict,
    InvalidAnswer,
    InvalidParent,
    InvalidSpec,
    LeaseLost,
    MetaloopError,
    Unavailable,
)
from metaloop.common.faults import Fault, UnknownFault
from metaloop.common.kube.errors import Forbidden, TooManyRequests
from metaloop.reconciler.core.outcome import DONE, outcome_of
from metaloop.reconciler.errors import Failure, HookFailed, HookThrottled, NameTaken, WritesFailed

FORBIDDEN = Forbidden(ApiStatus(code=403, reason="Forbidden", message="no"))


def of(*errors: MetaloopError) -> WritesFailed:
    """Writes that failed for these reasons."""
    return WritesFailed([Failure(what=f"write {index}", error=error) for index, error in enumerate(errors)])


OUTCOMES: dict[str, tuple[MetaloopError, str, str, str]] = {
    # what failed: (the error, the result, its reason, who is told)
    "the controller's spec": (InvalidSpec("spec.x", "is wrong"), "rejected", "InvalidSpec", "parent"),
    "the parent": (InvalidParent("spec.selector", "is wrong"), "rejected", "InvalidParent", "parent"),
    "the webhook's answer": (InvalidAnswer("children", "is wrong"), "retry", "InvalidAnswer", "parent"),
    "the webhook": (HookFailed(hook="sync", fault=Fault.TIMED_OUT, message="10 s"), "retry", "TimedOut", "parent"),
    "the webhook's spec": (HookFailed(hook="sync", fault=Fault.ENDPOINT_INVALID, message="x"), "rejected", "EndpointInvalid", "parent"),
    "what a newer gateway says": (HookFailed(hook="sync", fault=UnknownFault("Invented"), message="x"), "retry", "Invented", "parent"),
    "a busy webhook": (HookThrottled(3.0, fault=Fault.WEBHOOK_BUSY, message="x"), "throttled", "TooManyRequests", "nobody"),
    "an open circuit": (HookThrottled(3.0, fault=Fault.CIRCUIT_OPEN, message="x"), "throttled", "CircuitOpen", "nobody"),
    "the gateway": (Unavailable("no route"), "retry", "Unavailable", "log"),
    "an overloaded API server": (TooManyRequests("busy"), "retry", "TooManyRequests", "log"),
    "a permission": (FORBIDDEN, "retry", "Forbidden", "parent"),
    "a name": (NameTaken("is taken"), "retry", "NameTaken", "parent"),
    "a race": (Conflict("changed"), "retry", "Conflict", "nobody"),
    "a lease": (LeaseLost("gone"), "retry", "LeaseLost", "nobody"),
    "several writes, all races": (of(Conflict("a"), Conflict("b")), "retry", "Conflict", "nobody"),
    "several writes, one for good": (of(Conflict("a"), FORBIDDEN, Unavailable("b")), "retry", "Forbidden", "parent"),
}  # fmt: skip


@pytest.mark.parametrize("case", OUTCOMES.values(), ids=OUTCOMES.keys())
def test_each_failure_has_its_outcome(case: tuple[MetaloopError, str, str, str]):
    failure, result, reason, audience = case

    outcome = outcome_of(failure)

    assert (outcome.result, outcome.reason, outcome.audience) == (result, reason, audience)
    assert outcome.message.endswith(str(failure))


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (InvalidSpec("spec.hooks", "is wrong"), "in the controller: spec.hooks: is wrong"),
        (InvalidParent("spec.selector", "is wrong"), "in the parent: spec.selector: is wrong"),
        (InvalidAnswer("children[0]", "is wrong"), "in the hook's answer: children[0]: is wrong"),
    ],
)
def test_message_says_whose_field_is_wrong(failure: MetaloopError, message: str):
    assert outcome_of(failure).message == message


def test_sync_that_came_to_its_end_is_done():
    assert outcome_of(None) is DONE


@pytest.mark.parametrize("seconds", [None, 12.5])
def test_time_that_a_webhook_asks_to_wait_is_passed_on(seconds: float | None):
    assert outcome_of(HookThrottled(seconds, fault=Fault.WEBHOOK_BUSY, message="x")).after_seconds == seconds


def test_what_only_the_gateway_sees_mended_is_tried_again_within_a_time():
    failure = HookFailed(hook="sync", fault=Fault.CREDENTIALS_UNAVAILABLE, message="no Secret")

    outcome = outcome_of(failure)

    assert (outcome.result, outcome.after_seconds) == ("retry", 30.0)


def test_long_lists_of_failures_are_cut():
    message = str(of(*[Conflict(f"reason {index}") for index in range(500)]))

    assert message.endswith("and 495 more")
    assert len(message) < 300
