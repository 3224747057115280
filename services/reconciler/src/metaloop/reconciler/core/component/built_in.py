"""The readiness of the built-in kinds that are no workloads with replicas."""

from datetime import datetime, timedelta
from typing import Final

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.conditions import CURRENT, Readiness, condition, failed, in_progress, is_false, is_true

_SCHEDULING: Final = timedelta(seconds=15)
"""How long a pod may be unschedulable: nodes come and go."""
_CRASHING: Final = "CrashLoopBackOff"


def pod(live: JsonObject, now: datetime) -> Readiness:
    """The readiness of a Pod. One that ended is as it should be, whichever way it ended."""
    match unstructured.text(unstructured.child_object(live, "status"), "phase"):
        case "Succeeded" | "Failed":
            return CURRENT
        case "Running":
            if is_true(live, "Ready"):
                return CURRENT
            return failed(f"crash looping: {crashing}") if (crashing := _crashing(live)) else in_progress("it runs, and is not ready")
        case "Pending":
            return failed("it could not be scheduled") if _is_unschedulable(live, now) else in_progress("it is pending")
        case phase:
            return in_progress(f"its phase is {phase or 'unknown'}")


def _crashing(live: JsonObject) -> str:
    """The containers that crash again and again."""
    statuses = unstructured.child_objects(unstructured.child_object(live, "status"), "containerStatuses")
    waiting = [(each, unstructured.child_object(unstructured.child_object(each, "state"), "waiting")) for each in statuses]
    return ", ".join(unstructured.text(each, "name") for each, state in waiting if state.get("reason") == _CRASHING)


def _is_unschedulable(live: JsonObject, now: datetime) -> bool:
    scheduled = condition(live, "PodScheduled") or {}
    if scheduled.get("status") != "False" or scheduled.get("reason") != "Unschedulable":
        return False
    try:
        since = datetime.fromisoformat(unstructured.text(scheduled, "lastTransitionTime"))
    except ValueError:
        return False
    return now - since > _SCHEDULING


def volume_claim(live: JsonObject, now: datetime) -> Readiness:
    """The readiness of a PersistentVolumeClaim."""
    del now
    phase = unstructured.text(unstructured.child_object(live, "status"), "phase")
    return CURRENT if phase == "Bound" else in_progress(f"it is not bound: its phase is {phase or 'unknown'}")


def service(live: JsonObject, now: datetime) -> Readiness:
    """The readiness of a Service."""
    del now
    spec = unstructured.child_object(live, "spec")
    if spec.get("type") == "LoadBalancer" and not unstructured.text(spec, "clusterIP"):
        return in_progress("it has no cluster IP yet")
    return CURRENT


def job(live: JsonObject, now: datetime) -> Readiness:
    """The readiness of a Job: it is over. One that failed is Failed at once."""
    del now
    if is_true(live, "Failed"):
        return failed(unstructured.text(condition(live, "Failed") or {}, "message") or "it failed")
    if is_true(live, "FailureTarget"):
        return failed(unstructured.text(condition(live, "FailureTarget") or {}, "message") or "it is failing")
    if is_true(live, "Complete"):
        return CURRENT
    counts = unstructured.child_object(live, "status")
    return in_progress(f"active: {unstructured.integer(counts, 'active')}, succeeded: {unstructured.integer(counts, 'succeeded')}")


def crd(live: JsonObject, now: datetime) -> Readiness:
    """The readiness of a CustomResourceDefinition."""
    del now
    if is_false(live, "NamesAccepted"):
        return failed(unstructured.text(condition(live, "NamesAccepted") or {}, "message") or "its names are not accepted")
    if is_false(live, "Established") and unstructured.text(condition(live, "Established") or {}, "reason") != "Installing":
        return failed(unstructured.text(condition(live, "Established") or {}, "message") or "it is not established")
    if is_true(live, "Established") and is_true(live, "NamesAccepted"):
        return CURRENT
    return in_progress("it is not established yet")


def api_service(live: JsonObject, now: datetime) -> Readiness:
    """The readiness of an APIService."""
    del now
    if is_true(live, "Available"):
        return CURRENT
    return in_progress(unstructured.text(condition(live, "Available") or {}, "message") or "it is not available yet")
