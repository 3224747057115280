"""The faults that end a sync or a hook call, in one table: whose each is, whether it is retried, who hears of it.

Code raises a fault as an exception, and each exception class names its fault (`MetaloopError.fault`). What crosses the
wire, in a report or in a gateway's verdict, is the fault and never the name of a class.

Rules
    1. `wire` is a protocol: peers of other versions read it, and users see it as a reason. It is never changed, and
       never used for another fault.
    2. A peer that is newer may name a fault that is not in the table. It is shown as it is named and treated as
       transient: retried with the usual backoff.
    3. `rejected` is for faults whose end the watcher sees: a change of the parent or of its controller. Whatever else
       somebody must change (a webhook, a quota, a permission) is retried with backoff, as nobody hears of the change.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, TypeAlias

Result: TypeAlias = Literal["done", "retry", "throttled", "rejected"]
"""What the end of a sync means for its job.

`done`: forget its failures. `retry`: again, after the key's backoff. `throttled`: again after `after_seconds`, the
count of failures untouched. `rejected`: not again before a change, a resync or the longest backoff; it counts as a
failure.
"""

Audience: TypeAlias = Literal["parent", "log", "nobody"]
"""Who hears of a fault: readers of the parent's events and of the log, of the log only, or of the log's details."""


class Owner(Enum):
    """Whose a fault is: who has to change something before it ends. The gravest first."""

    CONTROLLER = "controller"
    """The author of the controller's spec."""

    HOOK = "hook"
    """The author of the webhook, or whoever operates it, its network and its credentials."""

    APPROVER = "approver"
    """Whoever may confirm what was planned. Nothing failed."""

    PARENT = "parent"
    """The owner of the parent object."""

    CLUSTER = "cluster"
    """The API server: its rules, its permissions, its load, and the way to it."""

    METALOOP = "metaloop"
    """Metaloop's own services, or whoever operates them."""

    NOBODY = "nobody"
    """It ends by itself with the next attempt."""


class Fault(Enum):
    """Every fault that this version knows: its name on the wire, its owner, its result, its audience.

    Two columns are rare: the longest delay of a retry in seconds, and a reason that differs from the name on the wire.
    """

    # The controller and the parent.
    INVALID_SPEC = ("InvalidSpec", Owner.CONTROLLER, "rejected", "parent")
    INVALID_PARENT = ("InvalidParent", Owner.PARENT, "rejected", "parent")
    NAME_TAKEN = ("NameTaken", Owner.PARENT, "retry", "parent")
    REFERENCE_MISSING = ("ReferenceMissing", Owner.PARENT, "retry", "parent", 10.0)
    DELETION_HELD_BACK = ("DeletionHeldBack", Owner.APPROVER, "retry", "parent")

    # The hook: what it answers, and what the gateway says of the call.
    INVALID_ANSWER = ("InvalidAnswer", Owner.HOOK, "retry", "parent")
    RELATED_UNKNOWN = ("RelatedUnknown", Owner.HOOK, "retry", "parent")
    OWNER_REMOVED = ("OwnerRemoved", Owner.HOOK, "retry", "parent")
    ENDPOINT_INVALID = ("EndpointInvalid", Owner.HOOK, "rejected", "parent")
    ADDRESS_DENIED = ("AddressDenied", Owner.HOOK, "retry", "parent")
    CREDENTIALS_UNAVAILABLE = ("CredentialsUnavailable", Owner.HOOK, "retry", "parent", 30.0)
    CREDENTIALS_INVALID = ("CredentialsInvalid", Owner.HOOK, "retry", "parent", 30.0)
    STATUS_UNEXPECTED = ("StatusUnexpected", Owner.HOOK, "retry", "parent")
    BODY_TOO_LARGE = ("BodyTooLarge", Owner.HOOK, "retry", "parent")
    BODY_UNDECODABLE = ("BodyUndecodable", Owner.HOOK, "retry", "parent")
    OVERLOADED = ("Overloaded", Owner.HOOK, "retry", "parent")
    CONNECTION_NOT_ACCEPTED = ("ConnectionNotAccepted", Owner.HOOK, "retry", "parent")
    CONNECT_FAILED = ("ConnectFailed", Owner.HOOK, "retry", "parent")
    TLS_FAILED = ("TlsFailed", Owner.HOOK, "retry", "parent")
    CONNECTION_LOST = ("ConnectionLost", Owner.HOOK, "retry", "parent")
    TIMED_OUT = ("TimedOut", Owner.HOOK, "retry", "parent")
    WEBHOOK_BUSY = ("WebhookTooManyRequests", Owner.HOOK, "throttled", "nobody", None, "TooManyRequests")
    RETRY_ASKED = ("RetryAsked", Owner.HOOK, "throttled", "nobody")
    CONTROLLER_BUSY = ("ControllerBusy", Owner.HOOK, "throttled", "nobody")
    ENDPOINT_BUSY = ("EndpointBusy", Owner.HOOK, "throttled", "nobody")
    CIRCUIT_OPEN = ("CircuitOpen", Owner.HOOK, "throttled", "nobody")

    # The API server.
    REFUSED = ("Refused", Owner.CLUSTER, "retry", "parent")
    NOT_FOUND = ("NotFound", Owner.CLUSTER, "retry", "parent")
    ALREADY_EXISTS = ("AlreadyExists", Owner.CLUSTER, "retry", "parent")
    FORBIDDEN = ("Forbidden", Owner.CLUSTER, "retry", "parent")
    INVALID = ("Invalid", Owner.CLUSTER, "retry", "parent")
    EXPIRED = ("Expired", Owner.CLUSTER, "retry", "parent")
    UNAVAILABLE = ("Unavailable", Owner.CLUSTER, "retry", "log")
    UNAUTHORIZED = ("Unauthorized", Owner.CLUSTER, "retry", "log")
    TOO_MANY_REQUESTS = ("TooManyRequests", Owner.CLUSTER, "retry", "log")
    SERVER_TIMEOUT = ("ServerTimeout", Owner.CLUSTER, "retry", "log")
    UNANSWERED = ("Unanswered", Owner.CLUSTER, "retry", "log")
    UNREADABLE = ("Unreadable", Owner.CLUSTER, "retry", "log")

    # Metaloop itself.
    NOBODY_THERE = ("NobodyThere", Owner.METALOOP, "retry", "log")
    GATEWAY_TIMED_OUT = ("GatewayTimedOut", Owner.METALOOP, "retry", "log")
    INVALID_KUBECONFIG = ("InvalidKubeconfig", Owner.METALOOP, "retry", "parent")
    CRASHED = ("Crashed", Owner.METALOOP, "retry", "log")

    # What ends by itself.
    CONFLICT = ("Conflict", Owner.NOBODY, "retry", "nobody")
    LEASE_LOST = ("LeaseLost", Owner.NOBODY, "retry", "nobody")
    WORKER_STOPPED = ("WorkerStopped", Owner.NOBODY, "throttled", "nobody")

    def __init__(  # noqa: PLR0913, PLR0917 - the columns of the table
        self,
        wire: str,
        owner: Owner,
        result: Result,
        audience: Audience,
        retry_within_seconds: float | None = None,
        reason: str = "",
    ) -> None:
        self.wire = wire
        self.owner = owner
        self.result: Result = result
        self.audience: Audience = audience
        self.retry_within_seconds = retry_within_seconds
        """The longest that a retry may be put off; None where the backoff may grow as usual."""

        self.reason = reason or wire
        """What logs, metrics, events and conditions call it."""


@dataclass(frozen=True, slots=True)
class UnknownFault:
    """A fault that is not in this version's table: a newer peer named it. Treated as transient."""

    wire: str

    @property
    def reason(self) -> str:
        """The name that the peer gave it."""
        return self.wire

    @property
    def owner(self) -> Owner:
        """Metaloop's: one of its services is older than another."""
        return Owner.METALOOP

    @property
    def result(self) -> Result:
        """Retried: whatever it is, it may be over."""
        return "retry"

    @property
    def audience(self) -> Audience:
        """Told on the parent, since it may be of a kind that its owner has to end."""
        return "parent"

    @property
    def retry_within_seconds(self) -> float | None:
        """No bound on the backoff."""
        return None


AnyFault: TypeAlias = Fault | UnknownFault
"""What a reader of the wire has to expect."""

_BY_WIRE: Final = {fault.wire: fault for fault in Fault}
_OWNERS: Final = tuple(Owner)
_AUDIENCES: Final[tuple[Audience, ...]] = ("parent", "log", "nobody")
_RESULTS: Final[tuple[Result, ...]] = ("rejected", "throttled", "retry", "done")


def fault_of(wire: str) -> AnyFault:
    """The fault of this name on the wire."""
    return _BY_WIRE.get(wire) or UnknownFault(wire)


def gravest(faults: Iterable[AnyFault]) -> AnyFault:
    """The fault that decides for all: what more people hear of, then what is retried least, then the gravest owner's.

    Of equals the first. Raises ValueError if there is none.
    """
    return min(faults, key=_gravity)


def _gravity(fault: AnyFault) -> tuple[int, int, int]:
    return _AUDIENCES.index(fault.audience), _RESULTS.index(fault.result), _OWNERS.index(fault.owner)
