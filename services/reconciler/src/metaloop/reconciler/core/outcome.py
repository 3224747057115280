"""What a result or failure means for the job: done, again after a while, throttled, rejected; and who should hear of it.

Rules
    1. What mends itself is tried again quietly: conflicts, leases lost, webhooks that ask for time.
    2. What an operator of the cluster or of Metaloop must mend is logged; what the owner of the parent, its controller or its webhook must mend is told on the
       parent. It is *rejected* only where we will hear of the change that mends it (the parent's or its controller's own object); otherwise (a webhook, a
       quota, a permission) it is tried again with backoff.
    3. Of several failures the gravest decides.
"""

from typing import Final

from metaloop.common.errors import (
    Conflict,
    InvalidAnswer,
    InvalidParent,
    InvalidSpec,
    LeaseLost,
    MetaloopError,
    Refused,
    Unavailable,
)
from metaloop.common.report import Result
from metaloop.reconciler.core.model import Audience, Outcome
from metaloop.reconciler.errors import DeletionHeldBack, HookFailed, HookThrottled, NameTaken, RelatedUnknown, WritesFailed

DONE: Final = Outcome(result="done")

_OUTCOMES: Final[tuple[tuple[type[MetaloopError], Result, Audience], ...]] = (
    # The first class that fits, gravest first.
    (InvalidSpec, "rejected", "parent"),
    (InvalidParent, "rejected", "parent"),
    (InvalidAnswer, "retry", "parent"),
    (HookFailed, "retry", "parent"),
    (RelatedUnknown, "retry", "parent"),
    (DeletionHeldBack, "retry", "parent"),
    (NameTaken, "retry", "parent"),
    (Refused, "retry", "parent"),
    (Unavailable, "retry", "log"),
    (HookThrottled, "throttled", "nobody"),
    (Conflict, "retry", "nobody"),
    (LeaseLost, "retry", "nobody"),
    (MetaloopError, "retry", "parent"),
)
_PLACES: Final[dict[type[MetaloopError], str]] = {
    # Whose the field is that these three name.
    InvalidSpec: "in the controller: ",
    InvalidParent: "in the parent: ",
    InvalidAnswer: "in the hook's answer: ",
}


def outcome_of(failure: MetaloopError | None) -> Outcome:
    """What the end of a sync means for its job; None is a sync that came to its end."""
    if failure is None:
        return DONE
    grave = min((each.error for each in failure.failures), key=_row) if isinstance(failure, WritesFailed) else failure
    _, result, audience = _OUTCOMES[_row(grave)]
    return Outcome(
        result=_final(grave, result),
        reason=grave.reason if isinstance(grave, HookFailed | HookThrottled) else type(grave).__name__,
        message=f"{_PLACES.get(type(failure), '')}{failure}",
        after_seconds=_after_seconds(grave),
        audience=audience,
    )


def _after_seconds(failure: MetaloopError) -> float | None:
    """When the next try is due; None leaves that to the key's backoff."""
    match failure:
        case HookThrottled(after_seconds=seconds):
            return seconds
        case HookFailed(again_within_seconds=seconds):
            return seconds
        case _:
            return None


def _row(failure: MetaloopError) -> int:
    return next(row for row, (kind, _, _) in enumerate(_OUTCOMES) if isinstance(failure, kind))


def _final(failure: MetaloopError, result: Result) -> Result:
    # A webhook spec that the gateway can't call at all is the controller's to mend, like any other invalid spec.
    return "rejected" if isinstance(failure, HookFailed) and not failure.retryable else result
