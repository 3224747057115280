"""How far a component is: its state, the reason for it, and since when.

    situation                              state            reason
    suspended                              Pending          Suspended
    all objects are ready                  Ready            Ready
    not all are                            Processing       Processing
    not all are, for too long              Error            Timeout
    one has failed for good                Error            DependentFailed
    an attempt failed, and a retry is due  Pending          Retrying, or Timeout
    an attempt failed                      Error            the fault, or Timeout
    deleted, and objects are left          Deleting         DeletionProcessing
    deleted, and others still need it      Deleting         DeletionBlocked
    deleted, and a retry is due            DeletionPending  DeletionRetrying
    deleted, and an attempt failed         Error            the fault

A component is timed out while it has been processing for longer than its timeout. It may become ready nevertheless.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, TypeAlias

from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured

State: TypeAlias = Literal["Pending", "Processing", "Ready", "Error", "Deleting", "DeletionPending"]
READY: Final = "Ready"
TIMEOUT: Final = "Timeout"
DELETION_BLOCKED: Final = "DeletionBlocked"

RESERVED: Final = frozenset(
    {
        "observedGeneration",
        "appliedGeneration",
        "lastAppliedAt",
        "processingDigest",
        "processingSince",
        "revision",
        "state",
        "inventory",
        "inventoryConfigMaps",
        "placement",
    }
)
"""The fields of a component's status that are ours. A hook may state all others, and conditions other than Ready."""

_CONDITION_STATUS: Final[dict[State, str]] = {"Ready": "True", "Error": "False"}
"""The status of the condition Ready. For all other states it is Unknown."""

_SCHEDULE: Final = ((0.15, 0.1), (0.35, 0.2), (0.75, 0.4), (1.55, 0.8), (16.55, 1.0), (76.55, 2.0))
"""Until when, in seconds since the beginning, the next look is how far away."""
_FIRST_LOOK: Final = 0.05
_LAST_LOOK: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a pass found of the whole component."""

    state: State
    reason: str
    message: str = ""

    @property
    def is_warning(self) -> bool:
        """Whether somebody may have to do something."""
        return self.state == "Error" or self.reason == DELETION_BLOCKED

    def is_news(self, status: JsonObject) -> bool:
        """Whether a status says something else."""
        return (unstructured.text(status, "state"), _reason_in(status)) != (self.state, self.reason)


def _reason_in(status: JsonObject) -> str:
    """The reason of the condition Ready."""
    conditions = unstructured.child_objects(status, "conditions")
    return next((unstructured.text(each, "reason") for each in conditions if each.get("type") == READY), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a component's status remembers from one pass to the next."""

    digest: str
    """The digest of the component that is being processed."""
    revision: int
    """How many different digests there were. The first is 1."""
    since: str = ""
    """Since when not all objects are ready. Empty while all are, and before the first look."""

    @property
    def started(self) -> datetime | None:
        """Since when not all objects are ready."""
        try:
            return datetime.fromisoformat(self.since)
        except ValueError:
            return None

    def seconds(self, now: datetime) -> float:
        """For how long not all objects have been ready."""
        return (now - self.started).total_seconds() if self.started else 0.0

    def is_timed_out(self, now: datetime, timeout_seconds: float) -> bool:
        """Whether not all objects have been ready for too long."""
        return self.started is not None and self.seconds(now) >= timeout_seconds

    def processing(self, now: datetime) -> "Progress":
        """The same, while not all objects are ready."""
        return self if self.started else replace(self, since=timestamp(now))

    def ready(self) -> "Progress":
        """The same, once all objects are ready."""
        return replace(self, since="")


def timestamp(now: datetime) -> str:
    """A time as Kubernetes writes it."""
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def stored_progress(status: JsonObject) -> Progress:
    """How far a component was when its status was written."""
    return Progress(
        digest=unstructured.text(status, "processingDigest"),
        revision=unstructured.integer(status, "revision"),
        since=unstructured.text(status, "processingSince"),
    )


def progress_of(status: JsonObject, digest: str) -> Progress:
    """How far a component is whose status was this, and whose digest is now this."""
    stored = stored_progress(status)
    return stored if stored.digest == digest else Progress(digest=digest, revision=stored.revision + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookStatus:
    """What the hooks of a pass state of the status."""

    fields: JsonObject = field(default_factory=dict[str, JsonValue])
    is_whole: bool = False
    """Whether fields that no hook stated are dropped. Otherwise they stay as they are."""

    def whole(self, status: JsonObject) -> "HookStatus":
        """The same and `status`, which is all that there is beside it."""
        return HookStatus(fields={**self.fields, **status}, is_whole=True)

    def merged(self, status: JsonObject) -> "HookStatus":
        """The same and `status`. Null removes a field."""
        return replace(self, fields={**self.fields, **status})

    def over(self, former: JsonObject) -> JsonObject:
        """The fields of the status that are not ours, where they were those of `former`."""
        present = self.fields if self.is_whole else {**former, **self.fields}
        return {name: value for name, value in present.items() if name not in RESERVED and value is not None}


NOTHING_STATED: Final = HookStatus()


def next_look_seconds(elapsed: float) -> float:
    """How soon to look again at a component that has been processing for so long.

    Events come sooner as a rule. This is for what no event tells.
    """
    if elapsed < _FIRST_LOOK:
        return _FIRST_LOOK
    return next((step for until, step in _SCHEDULE if elapsed < until), _LAST_LOOK)


def not_ready(progress: Progress, waiting: Iterable[str], *, now: datetime, timeout_seconds: float) -> Verdict:
    """The verdict while not all objects are ready. `waiting` says which, and why."""
    names = [*waiting]
    shown = "; ".join(names[:3]) + (f"; and {len(names) - 3} more" if len(names) > 3 else "")
    if progress.is_timed_out(now, timeout_seconds):
        return Verdict(state="Error", reason=TIMEOUT, message=f"Not ready after {timeout_seconds:g} s: {shown}")
    return Verdict(state="Processing", reason="Processing", message=f"Waiting for {shown}" if shown else "Waiting")


def status_of(component: JsonObject, stated: HookStatus, verdict: Verdict, progress: Progress, *, now: datetime) -> JsonObject:
    """The status of a component, without its inventory: what the hooks `stated`, and around it what is ours."""
    former = unstructured.child_object(component, "status")
    generation = unstructured.generation(component)
    kept = stated.over(former)
    return {
        **kept,
        "observedGeneration": generation,
        **_applied(former, verdict, generation, now),
        "processingDigest": progress.digest,
        **({"processingSince": progress.since} if progress.since else {}),
        "revision": progress.revision,
        "state": verdict.state,
        "conditions": [*_others(kept), _ready(former, verdict, generation, now)],
    }


def _applied(former: JsonObject, verdict: Verdict, generation: int, now: datetime) -> JsonObject:
    """Which generation was last applied in full, and when that was."""
    if verdict.state == READY and (former.get("state") != READY or former.get("appliedGeneration") != generation):
        return {"appliedGeneration": generation, "lastAppliedAt": timestamp(now)}
    return {name: former[name] for name in ("appliedGeneration", "lastAppliedAt") if name in former}


def _others(status: JsonObject) -> list[JsonValue]:
    conditions = status.get("conditions")
    return [each for each in conditions if not (is_object(each) and each.get("type") == READY)] if isinstance(conditions, list) else []


def _ready(former: JsonObject, verdict: Verdict, generation: int, now: datetime) -> JsonObject:
    status = _CONDITION_STATUS.get(verdict.state, "Unknown")
    before = next((each for each in unstructured.child_objects(former, "conditions") if each.get("type") == READY), {})
    since = unstructured.text(before, "lastTransitionTime") if before.get("status") == status else ""
    return {
        "type": READY,
        "status": status,
        "reason": verdict.reason,
        "message": verdict.message[:1].upper() + verdict.message[1:],
        "observedGeneration": generation,
        "lastTransitionTime": since or timestamp(now),
    }
