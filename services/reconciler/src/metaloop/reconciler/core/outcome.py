"""What the end of a sync means for its job, as the table of faults says.

Rules
    1. Faults that end by themselves are retried silently: conflicts, lost leases, webhooks that ask to wait.
    2. A fault that an operator of the cluster or of Metaloop must fix is logged. One that the owner of the parent, or
       the author of its controller or webhook, must fix becomes an event of the parent.
    3. The gravest of several failures decides.

`metaloop.common.faults` says which fault is retried, when, and who is told.
"""

from typing import Final

from metaloop.common.errors import MetaloopError
from metaloop.common.faults import AnyFault, Fault
from metaloop.reconciler.core.model import Outcome
from metaloop.reconciler.errors import HookThrottled, WritesFailed

DONE: Final = Outcome(result="done")

_WHERE: Final[dict[AnyFault, str]] = {
    # The messages of these three name a field. This says of what.
    Fault.INVALID_SPEC: "in the controller: ",
    Fault.INVALID_PARENT: "in the parent: ",
    Fault.INVALID_ANSWER: "in the hook's answer: ",
}


def outcome_of(failure: MetaloopError | None) -> Outcome:
    """The outcome of a sync that ended with `failure`, or succeeded if that is None."""
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
    # The message of several failed writes says what each was about.
    return "" if isinstance(failure, WritesFailed) else _WHERE.get(failure.fault, "")
