"""The health of a controller: what prevents it from being served, how many of its parents fail, and its status."""

from collections.abc import Iterable
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
class Problem:
    """What prevents a controller from being served as its spec says."""

    reason: str
    """The reason of the Event."""
    condition: str
    """The reason of the condition `Ready`."""
    message: str
    is_refusal: bool = False
    """Whether a resource is missing or we may not watch it. Changes made to it meanwhile are missed."""
    is_wanted: bool = False
    """Whether a user asked for it. Its Event is Normal, not a Warning."""


@dataclass(slots=True)
class ControllerStats:
    """How many parents a running controller has, and how their last syncs ended."""

    parents: int = 0
    failing: dict[JobKey, SyncReport] = field(default_factory=dict[JobKey, SyncReport])
    """The last report of each unit of work whose last sync failed."""
    unsynced: set[JobKey] = field(default_factory=set[JobKey])
    """The units of work that existed when the instance started and have not been synced since."""
    throttled: set[JobKey] = field(default_factory=set[JobKey])
    """The units of work whose webhook throttled their last sync. A second time in a row is a failure."""
    has_parts: bool = False
    """Whether any of these is a part of a parent."""

    @property
    def failing_parents(self) -> int:
        """How many parents fail, each counted once, however many of its parts fail."""
        return _parents_in(self.failing)

    @property
    def failing_parts(self) -> int:
        """How many parts of parents fail."""
        return sum(bool(key.part) for key in self.failing)

    def record(self, report: SyncReport) -> None:
        """Count how a sync ended."""
        self.has_parts |= bool(report.key.part)
        match report.result:
            case "done":
                self._clear(report.key)
            case _ if report.fault is not None and report.fault.owner is Owner.NOBODY:
                return  # it is retried at once: this try says nothing
            case "throttled" if report.fault is not Fault.CIRCUIT_OPEN and report.key not in self.throttled:
                self.throttled.add(report.key)
            case "throttled":
                self.failing[report.key] = report
            case "retry" | "rejected":
                self.throttled.discard(report.key)
                self.failing[report.key] = report
        self.unsynced.discard(report.key)

    def add(self, key: JobKey, former: "ControllerStats") -> None:
        """Count a unit of work that exists, with what a former instance knew of it."""
        self.has_parts |= bool(key.part)
        self.parents += not key.part
        self.unsynced.add(key)
        if key in former.failing:
            self.failing[key] = former.failing[key]

    def forget(self, key: JobKey) -> None:
        """Remember nothing of a unit of work that is gone; if it is a parent, nothing of its parts either."""
        known = {*self.failing, *self.unsynced, *self.throttled} if self.has_parts and not key.part else ()
        parent = (key.resource, key.namespace, key.name)
        for each in (key, *(each for each in known if (each.resource, each.namespace, each.name) == parent)):
            self._clear(each)

    def _clear(self, key: JobKey) -> None:
        self.failing.pop(key, None)
        self.throttled.discard(key)
        self.unsynced.discard(key)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSummary:
    """What the status of a controller should say."""

    generation: int
    reason: str
    message: str
    is_ready: bool = False
    parents: int = 0
    failing: int = 0
    is_paused: bool = False
    is_settled: bool = True
    """Whether it covers all parents. False while some have not been synced since the start."""

    @property
    def condition(self) -> tuple[int, str, bool, bool]:
        """The part whose changes should be written soon. The rest can wait."""
        return self.generation, self.reason, self.is_ready, self.is_paused


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerHealth:
    """A controller and its health."""

    resource: ResourceInfo
    raw: JsonObject
    summary: HealthSummary


def summary_of(generation: int, *, problem: Problem | None, stats: ControllerStats | None, is_paused: bool = False) -> HealthSummary:
    """The health of a controller; `stats` is None unless it runs."""
    parents, failing = (stats.parents, stats.failing_parents) if stats else (0, 0)
    reason, message = _state(problem, stats)
    return HealthSummary(
        generation=generation,
        reason=reason,
        message=message,
        is_ready=reason == _SYNCED,
        parents=parents,
        failing=failing,
        is_paused=is_paused,
        is_settled=reason != _STARTING,
    )


def _state(problem: Problem | None, stats: ControllerStats | None) -> tuple[str, str]:
    """The reason and message of the condition `Ready`."""
    if problem is not None:
        return problem.condition, problem.message
    if stats is None:
        return _STARTING, "its resources are being listed"
    if stats.failing:
        return _failure(stats)
    if stats.unsynced:
        return _STARTING, f"{_parents_in(stats.unsynced)} of {stats.parents} parents have not been synced since it started"
    return _SYNCED, "all parents are in sync"


def _parents_in(keys: Iterable[JobKey]) -> int:
    return len({key.parent for key in keys})


def _failure(stats: ControllerStats) -> tuple[str, str]:
    """The reason and message for one failing parent: the first, so that they are stable."""
    first = min(stats.failing)
    report = stats.failing[first]
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


def status_of(summary: HealthSummary, before: JsonObject, *, at: str) -> JsonObject:
    """The status to write over `before`. Conditions of others stay.

    `at` is the transition time of our conditions that changed.
    """
    conditions = before.get("conditions")
    former = [entry for entry in conditions if is_object(entry)] if isinstance(conditions, list) else []
    return {
        "observedGeneration": summary.generation,
        "parents": summary.parents,
        "failingParents": summary.failing,
        "conditions": [
            *(entry for entry in former if entry.get("type") not in {READY, PAUSED}),
            *({**entry, "lastTransitionTime": _since(entry, former) or at} for entry in _conditions(summary)),
        ],
    }


def _conditions(summary: HealthSummary) -> list[JsonObject]:
    ready: JsonObject = {
        "type": READY,
        "status": "True" if summary.is_ready else "False",
        "observedGeneration": summary.generation,
        "reason": summary.reason,
        "message": summary.message,
    }
    if not summary.is_paused:
        return [ready]
    message = f"no hook is called and no child is written until the annotation {PAUSED_ANNOTATION} is taken away"
    paused: JsonObject = {
        "type": PAUSED,
        "status": "True",
        "observedGeneration": summary.generation,
        "reason": "PausedByAnnotation",
        "message": message,
    }
    return [ready, paused]


def _since(condition: JsonObject, former: list[JsonObject]) -> str:
    """The transition time of a condition whose status did not change; empty otherwise."""
    kept = (each for each in former if (each.get("type"), each.get("status")) == (condition["type"], condition["status"]))
    same = next(kept, None)
    return unstructured.text(same, "lastTransitionTime") if same else ""
