"""The readiness of workloads: the counts in their status must say that all replicas are of the present generation."""

from datetime import datetime
from typing import Final

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.conditions import CURRENT, Readiness, condition, failed, in_progress, is_false, is_true

_NO_PROGRESS: Final = "ProgressDeadlineExceeded"


def deployment(live: JsonObject, now: datetime) -> Readiness:
    """The readiness of a Deployment."""
    del now
    progressing = condition(live, "Progressing") or {}
    if progressing.get("reason") == _NO_PROGRESS:
        return failed(unstructured.text(progressing, "message") or "its progress deadline is exceeded")
    wanted, counts = _wanted(live), _Counts(live)
    behind = (
        counts.short("replicas", wanted)
        or counts.short("updatedReplicas", wanted)
        or counts.surplus("replicas", counts.of("updatedReplicas"))
        or counts.short("availableReplicas", counts.of("updatedReplicas"))
        or counts.short("readyReplicas", wanted)
    )
    if behind:
        return in_progress(behind)
    if is_false(live, "Progressing") or (progressing and not _has_new_replica_set(progressing)):
        return in_progress("its new ReplicaSet is not available")
    return CURRENT if is_true(live, "Available") or not wanted else in_progress("condition Available is not true")


def _has_new_replica_set(progressing: JsonObject) -> bool:
    return progressing.get("status") == "True" and progressing.get("reason") in {"NewReplicaSetAvailable", None, ""}


def stateful_set(live: JsonObject, now: datetime) -> Readiness:
    """The readiness of a StatefulSet."""
    del now
    spec, status = unstructured.child_object(live, "spec"), unstructured.child_object(live, "status")
    strategy = unstructured.child_object(spec, "updateStrategy")
    if strategy.get("type") == "OnDelete":
        return CURRENT
    wanted, counts = _wanted(live), _Counts(live)
    behind = counts.short("replicas", wanted) or counts.short("readyReplicas", wanted) or counts.surplus("replicas", wanted)
    if behind:
        return in_progress(behind)
    partition = unstructured.integer(unstructured.child_object(strategy, "rollingUpdate"), "partition")
    if partition:
        return in_progress(behind) if (behind := counts.short("updatedReplicas", wanted - partition)) else CURRENT
    behind = counts.short("currentReplicas", wanted)
    if behind:
        return in_progress(behind)
    if status.get("currentRevision") != status.get("updateRevision"):
        return in_progress("not all of its pods are of the present revision")
    return CURRENT


def daemon_set(live: JsonObject, now: datetime) -> Readiness:
    """The readiness of a DaemonSet. Its status must say which generation it is about."""
    del now
    status = unstructured.child_object(live, "status")
    if "observedGeneration" not in status:
        return in_progress("its status has no observedGeneration yet")
    if "desiredNumberScheduled" not in status:
        return in_progress("its status does not say yet how many pods are desired")
    wanted, counts = unstructured.integer(status, "desiredNumberScheduled"), _Counts(live)
    behind = (
        counts.short("currentNumberScheduled", wanted)
        or counts.short("updatedNumberScheduled", wanted)
        or counts.short("numberAvailable", wanted)
        or counts.short("numberReady", wanted)
    )
    return in_progress(behind) if behind else CURRENT


def replica_set(live: JsonObject, now: datetime) -> Readiness:
    """The readiness of a ReplicaSet."""
    del now
    if is_true(live, "ReplicaFailure"):
        return in_progress(unstructured.text(condition(live, "ReplicaFailure") or {}, "message") or "it can't create its pods")
    wanted, counts = _wanted(live), _Counts(live)
    behind = (
        counts.short("fullyLabeledReplicas", wanted)
        or counts.short("availableReplicas", wanted)
        or counts.short("readyReplicas", wanted)
        or counts.surplus("replicas", wanted)
    )
    return in_progress(behind) if behind else CURRENT


def _wanted(live: JsonObject) -> int:
    replicas = unstructured.child_object(live, "spec").get("replicas")
    return replicas if isinstance(replicas, int) else 1


class _Counts:
    """The counts in the status of a workload."""

    def __init__(self, live: JsonObject) -> None:
        self._status = unstructured.child_object(live, "status")

    def of(self, name: str) -> int:
        """One count; 0 if it is absent."""
        return unstructured.integer(self._status, name)

    def short(self, name: str, wanted: int) -> str:
        """What a count lacks. Empty if it is enough."""
        return f"{name}: {self.of(name)}/{wanted}" if self.of(name) < wanted else ""

    def surplus(self, name: str, wanted: int) -> str:
        """What a count has too many. Empty if it is not more."""
        return f"{name}: {self.of(name)}, which is more than {wanted}" if self.of(name) > wanted else ""
