"""What the end of a sync means for its job, read from the table of faults.

Rules
    1. What ends by itself is retried without a word: conflicts, lost leases, webhooks that ask to wait.
    2. What an operator of the cluster or of Metaloop must change is logged. What the owner of the parent, the author of
       its controller or of its webhook must change is told on the parent.
    3. Of several failures the gravest decides.

Which fault is retried, when, and who hears of it stands in `metaloop.common.faults`.
"""

from typing import Final

from metaloop.common.errors import MetaloopError
from metaloop.common.faults import AnyFault, Fault
from metaloop.reconciler.core.model import Outcome
from metaloop.reconciler.errors import HookThrottled, WritesFailed

DONE: Final = Outcome(result="done")

_WHERE: Final[dict[AnyFault, str]] = {
    # Whose the field is that the message of these three names.
    Fault.INVALID_SPEC: "in the controller: ",
    Fault.INVALID_PARENT: "in the parent: ",
    Fault.INVALID_ANSWER: "in the hook's answer: ",
}


def outcome_of(failure: MetaloopError | None) -> Outcome:
    """What the end of a sync means for its job; None is a sync that came to its end."""
    if failure is None:
        return DONE
    fault = failure.fault
    return Outcome(
        result=fault.result,
        fault=fault,
        message=f"{_where(failure)}{failure}",
        after_seconds=failure.after_seconds if isinstance(failure, HookThrottled) else fault.retry_within_seconds,
    )


def _where(failure: MetaloopError) -> str:
    # Of several writes, each says itself what it was about.
    return "" if isinstance(failure, WritesFailed) else _WHERE.get(failure.fault, "")
