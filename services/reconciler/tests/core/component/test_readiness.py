"""How objects are: a table of statuses by kind, and the rules that hold for every kind."""

from datetime import UTC, datetime

import pytest

from metaloop.common.json import JsonObject, JsonValue
from metaloop.reconciler.core.component.conditions import Status
from metaloop.reconciler.core.component.hints import NO_HINTS, Hints
from metaloop.reconciler.core.component.readiness import readiness_of

NOW = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)
LONG_AGO, JUST_NOW = "2026-01-02T11:59:00Z", "2026-01-02T11:59:55Z"


def cond(name: str, status: str = "True", **more: JsonValue) -> JsonObject:
    """A condition."""
    return {"type": name, "status": status, **more}


def conds(*conditions: JsonValue, **more: JsonValue) -> JsonObject:
    """A status with these conditions."""
    return {"conditions": [*conditions], **more}


def deployed(**counts: JsonValue) -> JsonObject:
    """The status of a Deployment with two replicas that is available, but for these counts."""
    ready = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas", "readyReplicas"), 2)
    return {"observedGeneration": 1, "conditions": [AVAILABLE, PROGRESSED], **ready, **counts}


def stateful(**more: JsonValue) -> JsonObject:
    """The status of a StatefulSet with two replicas that is ready, but for these fields."""
    counts = dict.fromkeys(("replicas", "readyReplicas", "currentReplicas", "updatedReplicas"), 2)
    return {**counts, "currentRevision": "r", "updateRevision": "r", **more}


def daemons(**counts: JsonValue) -> JsonObject:
    """The status of a DaemonSet on two nodes that is ready, but for these counts."""
    names = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
    return {"observedGeneration": 1, **dict.fromkeys(names, 2), **counts}


def replicas(**counts: JsonValue) -> JsonObject:
    """The status of a ReplicaSet with two replicas that is ready, but for these counts."""
    return {**dict.fromkeys(("replicas", "fullyLabeledReplicas", "availableReplicas", "readyReplicas"), 2), **counts}


def crashing(reason: str) -> JsonObject:
    """The status of a running pod whose container waits for this reason."""
    waiting: JsonObject = {"name": "main", "state": {"waiting": {"reason": reason}}}
    return conds(cond("Ready", "False"), phase="Running", containerStatuses=[waiting])


AVAILABLE, PROGRESSED = cond("Available"), cond("Progressing", reason="NewReplicaSetAvailable")
UNSCHEDULABLE = cond("PodScheduled", "False", reason="Unschedulable")
TWO: JsonObject = {"replicas": 2}
ON_DELETE: JsonObject = {**TWO, "updateStrategy": {"type": "OnDelete"}}
PARTITION: JsonObject = {**TWO, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}
CRD, API_SERVICE = "apiextensions.k8s.io/v1/CustomResourceDefinition", "apiregistration.k8s.io/v1/APIService"

ROWS: list[tuple[str, JsonObject, JsonObject, Status]] = [
    # kind, spec, status, how it is
    ("apps/v1/Deployment", TWO, {}, "InProgress"),
    ("apps/v1/Deployment", TWO, deployed(), "Current"),
    ("apps/v1/Deployment", TWO, deployed(observedGeneration=0), "InProgress"),
    ("apps/v1/Deployment", TWO, deployed(replicas=1), "InProgress"),
    ("apps/v1/Deployment", TWO, deployed(replicas=3), "InProgress"),
    ("apps/v1/Deployment", TWO, deployed(updatedReplicas=1), "InProgress"),
    ("apps/v1/Deployment", TWO, deployed(availableReplicas=1), "InProgress"),
    ("apps/v1/Deployment", TWO, deployed(readyReplicas=1), "InProgress"),
    ("apps/v1/Deployment", TWO, deployed(readyReplicas=None), "InProgress"),
    ("apps/v1/Deployment", TWO, deployed(conditions=[PROGRESSED]), "InProgress"),
    ("apps/v1/Deployment", TWO, deployed(conditions=[cond("Available", "False"), PROGRESSED]), "InProgress"),
    ("apps/v1/Deployment", TWO, deployed(conditions=[AVAILABLE]), "Current"),
    ("apps/v1/Deployment", TWO, deployed(conditions=[AVAILABLE, cond("Progressing", reason="ReplicaSetUpdated")]), "InProgress"),
    ("apps/v1/Deployment", TWO, deployed(conditions=[AVAILABLE, cond("Progressing", "False")]), "InProgress"),
    ("apps/v1/Deployment", TWO, conds(cond("Progressing", "False", reason="ProgressDeadlineExceeded")), "Failed"),
    ("apps/v1/Deployment", {}, deployed(), "Current"),
    ("apps/v1/Deployment", {}, deployed(replicas=1, updatedReplicas=1, availableReplicas=1, readyReplicas=1), "Current"),
    ("apps/v1/Deployment", {"replicas": 0}, conds(PROGRESSED, observedGeneration=1), "Current"),
    ("extensions/v1beta1/Deployment", TWO, {}, "InProgress"),
    ("apps/v1/StatefulSet", TWO, {}, "InProgress"),
    ("apps/v1/StatefulSet", TWO, stateful(), "Current"),
    ("apps/v1/StatefulSet", TWO, stateful(observedGeneration=2), "InProgress"),
    ("apps/v1/StatefulSet", TWO, stateful(replicas=1), "InProgress"),
    ("apps/v1/StatefulSet", TWO, stateful(replicas=3), "InProgress"),
    ("apps/v1/StatefulSet", TWO, stateful(readyReplicas=1), "InProgress"),
    ("apps/v1/StatefulSet", TWO, stateful(currentReplicas=1), "InProgress"),
    ("apps/v1/StatefulSet", TWO, stateful(updateRevision="s"), "InProgress"),
    ("apps/v1/StatefulSet", ON_DELETE, {}, "Current"),
    ("apps/v1/StatefulSet", PARTITION, stateful(updatedReplicas=1, updateRevision="s"), "Current"),
    ("apps/v1/StatefulSet", PARTITION, stateful(updatedReplicas=0), "InProgress"),
    ("apps/v1/DaemonSet", {}, {}, "InProgress"),
    ("apps/v1/DaemonSet", {}, {"observedGeneration": 1}, "InProgress"),
    ("apps/v1/DaemonSet", {}, daemons(), "Current"),
    ("apps/v1/DaemonSet", {}, daemons(observedGeneration=0), "InProgress"),
    ("apps/v1/DaemonSet", {}, daemons(currentNumberScheduled=1), "InProgress"),
    ("apps/v1/DaemonSet", {}, daemons(updatedNumberScheduled=1), "InProgress"),
    ("apps/v1/DaemonSet", {}, daemons(numberAvailable=1), "InProgress"),
    ("apps/v1/DaemonSet", {}, daemons(numberReady=1), "InProgress"),
    ("apps/v1/DaemonSet", {}, {"observedGeneration": 1, "desiredNumberScheduled": 0}, "Current"),
    ("apps/v1/ReplicaSet", TWO, {}, "InProgress"),
    ("apps/v1/ReplicaSet", TWO, replicas(), "Current"),
    ("apps/v1/ReplicaSet", TWO, replicas(replicas=3), "InProgress"),
    ("apps/v1/ReplicaSet", TWO, replicas(fullyLabeledReplicas=1), "InProgress"),
    ("apps/v1/ReplicaSet", TWO, replicas(availableReplicas=1), "InProgress"),
    ("apps/v1/ReplicaSet", TWO, replicas(readyReplicas=1), "InProgress"),
    ("apps/v1/ReplicaSet", TWO, replicas(conditions=[cond("ReplicaFailure")]), "InProgress"),
    ("apps/v1/ReplicaSet", {"replicas": 0}, {}, "Current"),
    ("v1/Pod", {}, {}, "InProgress"),
    ("v1/Pod", {}, {"phase": "Succeeded"}, "Current"),
    ("v1/Pod", {}, {"phase": "Failed"}, "Current"),
    ("v1/Pod", {}, {"phase": "Unknown"}, "InProgress"),
    ("v1/Pod", {}, {"phase": "Running"}, "InProgress"),
    ("v1/Pod", {}, conds(cond("Ready"), phase="Running"), "Current"),
    ("v1/Pod", {}, conds(cond("Ready", "False"), phase="Running"), "InProgress"),
    ("v1/Pod", {}, crashing("CrashLoopBackOff"), "Failed"),
    ("v1/Pod", {}, crashing("ContainerCreating"), "InProgress"),
    ("v1/Pod", {}, {"phase": "Pending"}, "InProgress"),
    ("v1/Pod", {}, conds({**UNSCHEDULABLE, "lastTransitionTime": LONG_AGO}, phase="Pending"), "Failed"),
    ("v1/Pod", {}, conds({**UNSCHEDULABLE, "lastTransitionTime": JUST_NOW}, phase="Pending"), "InProgress"),
    ("v1/Pod", {}, conds(UNSCHEDULABLE, phase="Pending"), "InProgress"),
    ("v1/Pod", {}, conds(cond("PodScheduled", "False", reason="Other", lastTransitionTime=LONG_AGO), phase="Pending"), "InProgress"),
    ("v1/PersistentVolumeClaim", {}, {}, "InProgress"),
    ("v1/PersistentVolumeClaim", {}, {"phase": "Pending"}, "InProgress"),
    ("v1/PersistentVolumeClaim", {}, {"phase": "Bound"}, "Current"),
    ("v1/Service", {}, {}, "Current"),
    ("v1/Service", {"type": "ClusterIP"}, {}, "Current"),
    ("v1/Service", {"type": "LoadBalancer"}, {}, "InProgress"),
    ("v1/Service", {"type": "LoadBalancer", "clusterIP": "10.0.0.1"}, {}, "Current"),
    ("batch/v1/Job", {}, {}, "InProgress"),
    ("batch/v1/Job", {}, {"active": 1}, "InProgress"),
    ("batch/v1/Job", {}, {"succeeded": 1, "startTime": LONG_AGO}, "InProgress"),
    ("batch/v1/Job", {}, conds(cond("Complete")), "Current"),
    ("batch/v1/Job", {}, conds(cond("SuccessCriteriaMet")), "InProgress"),
    ("batch/v1/Job", {}, conds(cond("Failed")), "Failed"),
    ("batch/v1/Job", {}, conds(cond("FailureTarget")), "Failed"),
    ("batch/v1/Job", {}, conds(cond("Failed", "False"), cond("Complete", "False")), "InProgress"),
    ("batch/v1/Job", {}, conds(cond("Suspended")), "InProgress"),
    (CRD, {}, {}, "InProgress"),
    (CRD, {}, conds(cond("NamesAccepted"), cond("Established")), "Current"),
    (CRD, {}, conds(cond("NamesAccepted")), "InProgress"),
    (CRD, {}, conds(cond("Established")), "InProgress"),
    (CRD, {}, conds(cond("NamesAccepted", "False"), cond("Established", "False")), "Failed"),
    (CRD, {}, conds(cond("NamesAccepted"), cond("Established", "False", reason="Installing")), "InProgress"),
    (CRD, {}, conds(cond("NamesAccepted"), cond("Established", "False", reason="NotAccepted")), "Failed"),
    (API_SERVICE, {}, {}, "InProgress"),
    (API_SERVICE, {}, conds(cond("Available", "False", message="no endpoints")), "InProgress"),
    (API_SERVICE, {}, conds(cond("Available")), "Current"),
    ("v1/ConfigMap", {}, {}, "Current"),
    ("v1/Secret", {}, {}, "Current"),
    ("batch/v1/CronJob", {}, {"active": [{}]}, "Current"),
    ("policy/v1/PodDisruptionBudget", {}, conds(cond("DisruptionAllowed", "False")), "Current"),
    ("v1/Namespace", {}, {"phase": "Active"}, "Current"),
    ("v1/ServiceAccount", {}, {}, "Current"),
    ("example.com/v1/Widget", {}, {}, "Current"),
    ("example.com/v1/Widget", {}, conds(), "Current"),
    ("example.com/v1/Widget", {}, conds(cond("Ready")), "Current"),
    ("example.com/v1/Widget", {}, conds(cond("Ready", "False")), "InProgress"),
    ("example.com/v1/Widget", {}, conds(cond("Ready", "Unknown")), "InProgress"),
    ("example.com/v1/Widget", {}, conds(cond("Synced", "False")), "Current"),
    ("example.com/v1/Widget", {}, {"observedGeneration": 1}, "Current"),
    ("example.com/v1/Widget", {}, {"observedGeneration": 0}, "InProgress"),
    ("example.com/v1/Widget", {}, conds(cond("Ready"), observedGeneration=0), "InProgress"),
    ("example.com/v1/Widget", {}, conds(cond("Reconciling")), "InProgress"),
    ("example.com/v1/Widget", {}, conds(cond("Reconciling"), cond("Ready")), "InProgress"),
    ("example.com/v1/Widget", {}, conds(cond("Reconciling", "False"), cond("Ready")), "Current"),
    ("example.com/v1/Widget", {}, conds(cond("Stalled"), cond("Ready")), "Failed"),
    ("example.com/v1/Widget", {}, conds(cond("Stalled", "False")), "Current"),
    ("example.com/v1/Widget", {}, conds(cond("Reconciling"), cond("Stalled")), "InProgress"),
    ("example.com/v1/Widget", {}, {"conditions": "none"}, "Current"),
    ("example.com/v1/ConfigMap", {}, conds(cond("Ready", "False")), "InProgress"),
    ("example.com/v1/Job", {}, {}, "Current"),
]


def live(kind: str, spec: JsonObject, status: JsonObject) -> JsonObject:
    """A live object in its first generation."""
    api_version, _, name = kind.rpartition("/")
    return {"apiVersion": api_version, "kind": name, "metadata": {"name": "a", "generation": 1}, "spec": spec, "status": status}


@pytest.mark.parametrize(("kind", "spec", "status", "expected"), ROWS)
def test_status_says_how_an_object_is(kind: str, spec: JsonObject, status: JsonObject, expected: Status):
    found = readiness_of(live(kind, spec, status), hints=NO_HINTS, now=NOW)

    assert found.status == expected
    assert bool(found.message) != found.is_ready


@pytest.mark.parametrize("kind", sorted({row[0] for row in ROWS}))
def test_object_that_is_being_deleted_is_terminating(kind: str):
    obj = live(kind, {}, conds(cond("Ready")))
    obj["metadata"] = {"name": "a", "deletionTimestamp": LONG_AGO}

    assert readiness_of(obj, hints=NO_HINTS, now=NOW).status == "Terminating"


GENERATION, CONDITION = Hints(has_observed_generation=True), Hints(has_ready_condition=True)
A_AND_B = Hints(conditions=("A", "B"))


@pytest.mark.parametrize(
    ("hints", "status", "expected"),
    [
        (GENERATION, {}, "InProgress"),
        (GENERATION, {"observedGeneration": 1}, "Current"),
        (GENERATION, {"observedGeneration": 0}, "InProgress"),
        (GENERATION, conds(cond("Ready")), "InProgress"),
        (GENERATION, conds(cond("Ready", observedGeneration=1)), "Current"),
        (GENERATION, conds(cond("Ready", observedGeneration=0)), "InProgress"),
        (CONDITION, {}, "InProgress"),
        (CONDITION, conds(cond("Other")), "InProgress"),
        (CONDITION, conds(cond("Ready")), "Current"),
        (CONDITION, conds(cond("Ready", "False")), "InProgress"),
        (A_AND_B, {}, "InProgress"),
        (A_AND_B, conds(cond("A")), "InProgress"),
        (A_AND_B, conds(cond("A"), cond("B", "False")), "InProgress"),
        (A_AND_B, conds(cond("A"), cond("B")), "Current"),
        (A_AND_B, conds(cond("A"), cond("B"), cond("Ready", "False")), "InProgress"),
        (A_AND_B, conds(cond("A"), cond("B"), cond("Stalled")), "Failed"),
    ],
)
def test_hints_say_what_a_status_will_have(hints: Hints, status: JsonObject, expected: Status):
    assert readiness_of(live("example.com/v1/Widget", {}, status), hints=hints, now=NOW).status == expected


def test_hinted_conditions_count_for_built_in_kinds_too():
    service = live("v1/Service", {}, conds(cond("Ready")))

    assert (
        readiness_of(service, hints=Hints(conditions=("LoadBalancerReady",)), now=NOW).message == "condition LoadBalancerReady is not true"
    )


def test_message_of_a_failed_job_is_the_message_of_its_condition():
    job = live("batch/v1/Job", {}, conds(cond("Failed", message="it ran too often")))

    assert readiness_of(job, hints=NO_HINTS, now=NOW).message == "it ran too often"


def test_message_of_a_workload_says_which_count_is_short():
    found = readiness_of(live("apps/v1/Deployment", TWO, deployed(readyReplicas=1, availableReplicas=2)), hints=NO_HINTS, now=NOW)

    assert found.message == "readyReplicas: 1/2"
