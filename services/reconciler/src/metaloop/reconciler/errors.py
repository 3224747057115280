"""The errors of one sync. Those of `metaloop.common.errors` (Conflict, Refused and others) are raised as they are.

MetaloopError
├── Transient
│   ├── HookThrottled        the webhook asks to wait: this is no failure, and nobody is told
│   │   └── RetryAsked       a hook of a component says in its answer that it is to be asked again later
│   └── GatewayTimedOut      the hook gateway does not answer at all, although the webhook's timeout is over
└── SyncError                the sync failed: the parent gets an event
    ├── HookFailed           the gateway rejected the call: the fault says why, and whether it is retried
    ├── RelatedUnknown       the customize hook asks for a resource that is not served: retried
    ├── OwnerRemoved         the hook names an owner that somebody removes each time it is written: retried
    ├── ReferenceMissing     a component refers to a Secret or ConfigMap that does not exist: retried
    ├── NameTaken            another object, which is not ours to touch, has the name of a desired child: retried
    ├── DeletionHeldBack     an answer deletes more than the limit, and nobody confirmed it: retried
    └── WritesFailed         some independent writes failed: the gravest failure decides

`metaloop.common.faults` says what each fault means for the job.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from metaloop.common.errors import MetaloopError, Transient
from metaloop.common.faults import AnyFault, Fault, gravest
from metaloop.common.report import Write

_NAMED_AT_MOST: Final = 5


class HookThrottled(Transient):
    """The webhook asks to wait, or the gateway does on its behalf. The fault says which.

    `after_seconds` is how long to wait. It is None if the webhook did not say.
    """

    fault: AnyFault = Fault.WEBHOOK_BUSY

    def __init__(self, after_seconds: float | None, *, fault: AnyFault, message: str) -> None:
        super().__init__(message)
        self.after_seconds = after_seconds
        self.fault = fault


class RetryAsked(HookThrottled):
    """A hook of a component answers that it can't tell yet, and when it is to be asked again."""

    fault: AnyFault = Fault.RETRY_ASKED

    def __init__(self, after_seconds: float, message: str) -> None:
        super().__init__(after_seconds, fault=Fault.RETRY_ASKED, message=message)


class GatewayTimedOut(Transient):
    """The hook gateway gave no verdict, although the webhook's timeout and the gateway's own time are over."""

    fault = Fault.GATEWAY_TIMED_OUT


class SyncError(MetaloopError):
    """The sync failed."""


class HookFailed(SyncError):
    """The webhook gave no usable answer. The fault is the one that the gateway named."""

    def __init__(self, *, hook: str, fault: AnyFault, message: str) -> None:
        super().__init__(f"{hook} hook: {message}")
        self.fault = fault


class RelatedUnknown(SyncError):
    """The customize hook asks for a resource that the API server doesn't serve. Once it does, the parent is synced."""

    fault = Fault.RELATED_UNKNOWN


class ReferenceMissing(SyncError):
    """A component refers to a Secret, to a ConfigMap or to a key of one that does not exist. It is watched."""

    fault = Fault.REFERENCE_MISSING


class NameTaken(SyncError):
    """A child can't be created, because an object of that name exists and is not this parent's.

    `rival` is the part of the same parent that has the name, if one has.
    """

    fault = Fault.NAME_TAKEN

    def __init__(self, message: str, *, rival: str = "") -> None:
        super().__init__(message)
        self.rival = rival


class OwnerRemoved(SyncError):
    """A child names an owner that somebody removes each time: most likely it does not exist."""

    fault = Fault.OWNER_REMOVED


class DeletionHeldBack(SyncError):
    """An answer deletes more than a guard allows. The message says what, and how to confirm it."""

    fault = Fault.DELETION_HELD_BACK


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A write that failed. `what` says which: `create ConfigMap default/a`."""

    what: str
    error: MetaloopError
    uncertain: Write | None = None
    """The write, if it may have been executed although no answer came."""

    def __str__(self) -> str:
        return f"{self.what}: {self.error}"


class WritesFailed(SyncError):
    """Independent writes failed. `failures` has all of them: none was skipped because another one failed.

    The fault is that of the gravest failure.
    """

    def __init__(self, failures: Sequence[Failure]) -> None:
        named = [str(failure) for failure in failures[:_NAMED_AT_MOST]]
        rest = len(failures) - len(named)
        super().__init__("; ".join([*named, f"and {rest} more"] if rest else named))
        self.failures = tuple(failures)
        self.fault = gravest(failure.error.fault for failure in failures)
