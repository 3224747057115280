"""How a controller fares: what keeps it from being served, how many parents it has, and which of them fail; and that as a status."""

from dataclasses import dataclass, field
from typing import assert_never

from metaloop.common.api import PAUSED_ANNOTATION
from metaloop.common.faults import AnyFault, Fault, Owner
from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.report import SyncReport

READY = "Ready"
PAUSED = "Paused"

_SYNCED = "Synced"
_STARTING = "Starting"


@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps a controller from being served as its spec wants it."""

    reason: str
    """An Event's reason."""
    condition: str
    """The reason of the condition `Ready`."""
    message: str
    is_refusal: bool = False
    """Whether a resource is missing, or we may not see it: what happened to it meanwhile, nobody can tell."""
    is_wanted: bool = False
    """Whether somebody asked for it: it is told as Normal, not as a Warning."""


@dataclass(slots=True)
class Standing:
    """The parents of one running controller, counted."""

    parents: int = 0
    failing: dict[JobKey, SyncReport] = field(default_factory=dict[JobKey, SyncReport])
    """The last reports of those whose last sync failed."""
    unheard: set[JobKey] = field(default_factory=set[JobKey])
    """Those that were there when the instance started, and of which no sync ended since."""
    put_off: set[JobKey] = field(default_factory=set[JobKey])
    """Those whose webhook asked for time, once: if it does so again, that is a failure."""

    def hear(self, report: SyncReport) -> None:
        """A sync of one of them ended."""
        match report.result:
            case "done":
                self.forget(report.key)
            case _ if report.fault is not None and report.fault.owner is Owner.NOBODY:
                return  # a try that will be repeated at once says nothing
            case "throttled" if report.fault is not Fault.CIRCUIT_OPEN and report.key not in self.put_off:
                self.put_off.add(report.key)
            case "throttled":
                self.failing[report.key] = report
            case "retry" | "rejected":
                self.put_off.discard(report.key)
                self.failing[report.key] = report
        self.unheard.discard(report.key)

    def take_over(self, key: JobKey, former: "Standing") -> None:
        """That parent is one of ours, as it was of a former instance."""
        self.parents += 1
        self.unheard.add(key)
        if key in former.failing:
            self.failing[key] = former.failing[key]

    def forget(self, key: JobKey) -> None:
        """That parent is well, or is no more."""
        self.failing.pop(key, None)
        self.put_off.discard(key)
        self.unheard.discard(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What the status of a controller should say."""

    generation: int
    reason: str
    message: str
    is_ready: bool = False
    parents: int = 0
    failing: int = 0
    is_paused: bool = False
    is_settled: bool = True
    """Whether it says how the parents fare, and not merely that this isn't known of all yet."""

    @property
    def condition(self) -> tuple[int, str, bool, bool]:
        """What of it is worth to be told soon; the rest can wait."""
        return self.generation, self.reason, self.is_ready, self.is_paused


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """A controller, and how it fares."""

    resource: ResourceInfo
    raw: JsonObject
    health: Health


def health_of(generation: int, *, trouble: Trouble | None, standing: Standing | None, is_paused: bool = False) -> Health:
    """How a controller fares; `standing` is None unless it runs."""
    parents, failing = (standing.parents, len(standing.failing)) if standing else (0, 0)
    reason, message = _state(trouble, standing)
    return Health(
        generation=generation,
        reason=reason,
        message=message,
        is_ready=reason == _SYNCED,
        parents=parents,
        failing=failing,
        is_paused=is_paused,
        is_settled=reason != _STARTING,
    )


def _state(trouble: Trouble | None, standing: Standing | None) -> tuple[str, str]:
    """The reason and message of the condition `Ready`."""
    if trouble is not None:
        return trouble.condition, trouble.message
    if standing is None:
        return _STARTING, "its resources are being listed"
    if standing.failing:
        return _failure(standing)
    if standing.unheard:
        return _STARTING, f"{len(standing.unheard)} of {standing.parents} parents have not been synced since it started"
    return _SYNCED, "all parents are in sync"


def _failure(standing: Standing) -> tuple[str, str]:
    """The reason and message for one failing parent, always the same one of the same ones."""
    first = min(standing.failing)
    report = standing.failing[first]
    name = f"{first.namespace}/{first.name}" if first.namespace else first.name
    return _failure_reason(report), f"{name}: {report.message or report.reason}"


def _failure_reason(report: SyncReport) -> str:
    if report.result == "throttled":
        return "HookThrottled"
    return "SyncFailing" if report.fault is None else _reason_by_owner(report.fault)


def _reason_by_owner(fault: AnyFault) -> str:
    match fault.owner:
        case Owner.HOOK:
            return "HookFailing"
        case Owner.APPROVER:
            return fault.reason  # nothing failed: somebody has to confirm first
        case Owner.CONTROLLER | Owner.PARENT | Owner.CLUSTER | Owner.METALOOP | Owner.NOBODY:
            return "SyncFailing"
        case _:
            assert_never(fault.owner)


def status_of(health: Health, before: JsonObject, *, at: str) -> JsonObject:
    """The status that says so; other people's conditions stay, and `at` is when one of ours changed, if it did."""
    conditions = before.get("conditions")
    former = [entry for entry in conditions if is_object(entry)] if isinstance(conditions, list) else []
    return {
        "observedGeneration": health.generation,
        "parents": health.parents,
        "failingParents": health.failing,
        "conditions": [
            *(entry for entry in former if entry.get("type") not in {READY, PAUSED}),
            *({**entry, "lastTransitionTime": _since(entry, former) or at} for entry in _conditions(health)),
        ],
    }


def _conditions(health: Health) -> list[JsonObject]:
    ready: JsonObject = {
        "type": READY,
        "status": "True" if health.is_ready else "False",
        "observedGeneration": health.generation,
        "reason": health.reason,
        "message": health.message,
    }
    if not health.is_paused:
        return [ready]
    told = f"no hook is called and no child is written until the annotation {PAUSED_ANNOTATION} is taken away"
    paused: JsonObject = {
        "type": PAUSED,
        "status": "True",
        "observedGeneration": health.generation,
        "reason": "PausedByAnnotation",
        "message": told,
    }
    return [ready, paused]


def _since(condition: JsonObject, former: list[JsonObject]) -> str:
    """When a condition became what it is, where it was so before; empty otherwise."""
    kept = (each for each in former if (each.get("type"), each.get("status")) == (condition["type"], condition["status"]))
    same = next(kept, None)
    return unstructured.text(same, "lastTransitionTime") if same else ""
