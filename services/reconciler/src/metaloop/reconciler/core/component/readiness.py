"""How an object is, as its own status tells: Current, InProgress, Failed or Terminating.

Rules, in this order
    1. An object that is being deleted is Terminating.
    2. Its status must be about its present generation, where it says which one it is about.
    3. The conditions Reconciling and Stalled mean what kstatus says.
    4. Conditions that a hint names must be true.
    5. The built-in kinds have rules of their own: `workloads` and `built_in`.
    6. For every other kind, a condition Ready decides. Without one the object is Current.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import group_of
from metaloop.reconciler.core.component.built_in import api_service, crd, job, pod, service, volume_claim
from metaloop.reconciler.core.component.conditions import CURRENT, Readiness, condition, failed, in_progress, is_true, terminating
from metaloop.reconciler.core.component.hints import NO_HINTS, Hints
from metaloop.reconciler.core.component.order import API_SERVICE, CRD, GroupKind
from metaloop.reconciler.core.component.workloads import daemon_set, deployment, replica_set, stateful_set

KindRule = Callable[[JsonObject, datetime], Readiness]


def readiness_of(live: JsonObject, *, hints: Hints, now: datetime) -> Readiness:
    """How a live object is. `now` decides what has lasted too long."""
    if unstructured.is_deleting(live):
        return terminating("it is being deleted")
    hinted = _with_hinted_status(live, hints)
    for rule in (_generation, _kstatus_conditions):
        found = rule(hinted)
        if found is not None:
            return found
    missing = [name for name in hints.conditions if not is_true(hinted, name)]
    if missing:
        return in_progress(f"condition {missing[0]} is not true")
    of_kind = _KINDS.get(GroupKind(group_of(unstructured.api_version(hinted)), unstructured.kind(hinted)))
    return of_kind(hinted, now) if of_kind is not None else _ready_condition(hinted)


def _with_hinted_status(live: JsonObject, hints: Hints) -> JsonObject:
    """`live` with what the hints say that its status will have."""
    if hints is NO_HINTS:
        return live
    status = {**unstructured.child_object(live, "status")}
    if hints.has_observed_generation and "observedGeneration" not in status:
        of_condition = (condition(live, "Ready") or {}).get("observedGeneration")
        status["observedGeneration"] = of_condition if isinstance(of_condition, int) else -1
    if hints.has_ready_condition and condition(live, "Ready") is None:
        status["conditions"] = [*unstructured.child_objects(status, "conditions"), {"type": "Ready", "status": "Unknown"}]
    return {**live, "status": status}


def _generation(live: JsonObject) -> Readiness | None:
    observed = unstructured.child_object(live, "status").get("observedGeneration")
    generation = unstructured.metadata(live).get("generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed != generation:
        return in_progress(f"its status is about generation {observed}, and it has generation {generation}")
    return None


def _kstatus_conditions(live: JsonObject) -> Readiness | None:
    if is_true(live, "Reconciling"):
        return in_progress(_message(live, "Reconciling"))
    return failed(_message(live, "Stalled")) if is_true(live, "Stalled") else None


def _ready_condition(live: JsonObject) -> Readiness:
    ready = condition(live, "Ready")
    if ready is None or ready.get("status") == "True":
        return CURRENT
    return in_progress(_message(live, "Ready"))


def _message(live: JsonObject, name: str) -> str:
    found = condition(live, name) or {}
    return unstructured.text(found, "message") or f"condition {name} is {unstructured.text(found, 'status') or 'Unknown'}"


def _always_current(live: JsonObject, now: datetime) -> Readiness:
    del live, now
    return CURRENT


_KINDS: Final[Mapping[GroupKind, KindRule]] = {
    GroupKind("apps", "Deployment"): deployment,
    GroupKind("apps", "StatefulSet"): stateful_set,
    GroupKind("apps", "DaemonSet"): daemon_set,
    GroupKind("apps", "ReplicaSet"): replica_set,
    GroupKind("extensions", "Deployment"): deployment,
    GroupKind("extensions", "DaemonSet"): daemon_set,
    GroupKind("extensions", "ReplicaSet"): replica_set,
    GroupKind("", "Pod"): pod,
    GroupKind("", "PersistentVolumeClaim"): volume_claim,
    GroupKind("", "Service"): service,
    GroupKind("batch", "Job"): job,
    CRD: crd,
    API_SERVICE: api_service,
    GroupKind("", "ConfigMap"): _always_current,
    GroupKind("", "Secret"): _always_current,
    GroupKind("batch", "CronJob"): _always_current,
    GroupKind("policy", "PodDisruptionBudget"): _always_current,
}
"""The rules of the built-in kinds."""
