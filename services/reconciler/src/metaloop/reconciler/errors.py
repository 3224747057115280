"""What can go wrong in one sync, drawn as a tree. The leaves of `metaloop.common.errors` are raised as they are.

MetaloopError
├── Transient
│   └── HookThrottled        the webhook asks to wait: no failure, nobody is told
└── SyncError                this sync could not be completed; told on the parent
    ├── HookFailed           the gateway rejected the call: its fault says why, and whether it is retried
    ├── RelatedUnknown       the customize hook asks for a resource that nobody serves: retried
    ├── NameTaken            a desired child's name belongs to an object that is not ours to touch: retried
    ├── DeletionHeldBack     an answer deletes more than a guard lets pass unconfirmed: retried
    └── WritesFailed         some writes failed that don't depend on each other; the gravest of them decides

What each fault means for the job stands in one table, `metaloop.common.faults`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from metaloop.common.errors import MetaloopError, Transient
from metaloop.common.faults import AnyFault, Fault, gravest
from metaloop.common.report import Write

_NAMED_AT_MOST: Final = 5


class HookThrottled(Transient):
    """The webhook asks to wait, or the gateway does on its behalf: the fault says which.

    `after_seconds` is how long, None if the webhook did not say.
    """

    fault: AnyFault = Fault.WEBHOOK_BUSY

    def __init__(
        self, after_seconds: float | None, *, fault: AnyFault = Fault.WEBHOOK_BUSY, message: str = "the webhook asks to wait"
    ) -> None:
        super().__init__(message)
        self.after_seconds = after_seconds
        self.fault = fault


class SyncError(MetaloopError):
    """This sync could not be completed."""


class HookFailed(SyncError):
    """The webhook gave no usable answer; the fault is the one that the gateway named."""

    def __init__(self, *, hook: str, fault: AnyFault, message: str) -> None:
        super().__init__(f"{hook} hook: {message}")
        self.fault = fault


class RelatedUnknown(SyncError):
    """The customize hook asks for a resource that is not served. Once it is, the parent is synced at once."""

    fault = Fault.RELATED_UNKNOWN


class NameTaken(SyncError):
    """A child can't be created: an object of that name exists, and it is not this parent's."""

    fault = Fault.NAME_TAKEN


class DeletionHeldBack(SyncError):
    """An answer deletes more than a guard lets pass; the message says what, and how it is confirmed."""

    fault = Fault.DELETION_HELD_BACK


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
    """Independent writes failed: each of them is in `failures`, and none was skipped because of another.

    The fault is that of the gravest failure.
    """

    def __init__(self, failures: Sequence[Failure]) -> None:
        named = [str(failure) for failure in failures[:_NAMED_AT_MOST]]
        rest = len(failures) - len(named)
        super().__init__("; ".join([*named, f"and {rest} more"] if rest else named))
        self.failures = tuple(failures)
        self.fault = gravest(failure.error.fault for failure in failures)
