"""What can go wrong in one sync, drawn as a tree; the leaves of `metaloop.common.errors` (a Conflict, a Refused …) are raised as they are.

MetaloopError
├── Transient
│   └── HookThrottled        the webhook asks for time: no failure, nobody is told
└── SyncError                this sync could not be completed; told on the parent
    ├── HookFailed           the webhook's fault, or its network's: no usable answer this time
    ├── RelatedUnknown       the customize hook asks for a resource that nobody serves
    ├── NameTaken            a desired child's name belongs to an object that is not ours to touch
    ├── DeletionHeldBack     an answer deletes more than a guard lets pass unconfirmed
    └── WritesFailed         some writes failed that don't depend on each other; the rest was done

What each of them means for the job stands in one table, `core/outcome.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from metaloop.common.errors import MetaloopError, Transient
from metaloop.common.hooks.call import TOO_MANY_REQUESTS
from metaloop.common.report import Write

_NAMED_AT_MOST: Final = 5


class HookThrottled(Transient):
    """The webhook asks for time, or the gateway does on its behalf; `reason` says which, `after_seconds` says how long, None where it did not say."""

    def __init__(self, after_seconds: float | None, *, reason: str = TOO_MANY_REQUESTS, message: str = "the webhook asks for time") -> None:
        super().__init__(message)
        self.after_seconds = after_seconds
        self.reason = reason


class SyncError(MetaloopError):
    """This sync could not be completed."""


class HookFailed(SyncError):
    """The webhook gave no usable answer; `reason` is the gateway's word for why, `retryable` where time alone may mend it."""

    def __init__(self, *, hook: str, reason: str, message: str, retryable: bool, again_within_seconds: float | None = None) -> None:
        super().__init__(f"{hook} hook: {message}")
        self.reason = reason
        self.retryable = retryable
        self.again_within_seconds = again_within_seconds


class RelatedUnknown(SyncError):
    """The customize hook asks for a resource that the API server doesn't serve; when it does, the parent is synced at once."""


class NameTaken(SyncError):
    """A child can't be created: an object of that name exists, and it is not this parent's."""


class DeletionHeldBack(SyncError):
    """An answer deletes more than a guard lets pass; the message says what, and how it is confirmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One write that failed: `what` says which, as in "create ConfigMap default/a"."""

    what: str
    error: MetaloopError
    uncertain: Write | None = None
    """The write, where it may have been executed although nobody answered."""

    def __str__(self) -> str:
        return f"{self.what}: {self.error}"


class WritesFailed(SyncError):
    """Writes that don't depend on each other failed: each of them stands in `failures`, none was skipped because of another."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        named = [str(failure) for failure in failures[:_NAMED_AT_MOST]]
        rest = len(failures) - len(named)
        super().__init__("; ".join([*named, f"and {rest} more"] if rest else named))
        self.failures = tuple(failures)
