"""Indexed job: a Pod for each index, two at a time; a failed one is run again."""

from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun, snapshots_of
from metaloop.devkit.demo.snapshot import Objects
from metaloop.devkit.errors import DevkitError
from metaloop.devkit.testbed.builtin import PODS

_JOBS = ResourceInfo(api_version="example.com/v1", resource="indexedjobs", kind="IndexedJob", namespaced=True, has_status=True)
_PARALLELISM = 2


async def _complete(run: ScenarioRun[Objects]) -> None:
    run.output.begin("a job of 5 indexes runs two Pods at a time; the Pod of the third index fails once")
    run.kubelet.failing.add("count-2")
    await run.apply("job.yaml")
    snapshot = await run.until(lambda snapshot: _is_within_bounds(snapshot, run) and _succeeded(snapshot, run) == 5)
    indexes = sorted(_index(pod) for pod in _pods(snapshot, run).values())
    run.output.end(f"all have succeeded, and never more than two ran at once; the indexes were {', '.join(indexes)}")


async def _grow(run: ScenarioRun[Objects]) -> None:
    run.output.begin("two more indexes are added")
    before = {unstructured.uid(pod) for pod in _pods(await run.snapshot(), run).values()}
    await run.change(_JOBS, "count", {"spec": {"completions": 7}})
    snapshot = await run.until(lambda snapshot: _is_within_bounds(snapshot, run) and _succeeded(snapshot, run) == 7)
    after = {unstructured.uid(pod) for pod in _pods(snapshot, run).values()}
    run.output.end(f"{len(after - before)} more Pods have run; none of the others ran again")


async def _delete(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the job is deleted")
    await run.delete(_JOBS, "count")
    await run.until(lambda snapshot: not _pods(snapshot, run))
    run.output.end("its Pods are deleted")


def _pods(snapshot: Objects, run: ScenarioRun[Objects]) -> dict[str, JsonObject]:
    return {key: pod for key, pod in snapshot.of("Pod").items() if key.startswith(f"{run.namespace}/count-")}


def _is_within_bounds(snapshot: Objects, run: ScenarioRun[Objects]) -> bool:
    """True; raises DevkitError if more Pods run than are allowed."""
    phases = [unstructured.child_object(pod, "status").get("phase") for pod in _pods(snapshot, run).values()]
    running = sum(phase in {"Pending", "Running"} for phase in phases)
    if running > _PARALLELISM:
        raise DevkitError(f"{running} Pods run at the same time, more than {_PARALLELISM}")
    return True


def _succeeded(snapshot: Objects, run: ScenarioRun[Objects]) -> object:
    """The number of succeeded Pods in the status of the job."""
    status = unstructured.child_object(snapshot.get("IndexedJob", f"{run.namespace}/count"), "status")
    return status.get("succeeded")


def _index(pod: JsonObject) -> str:
    """The index in the environment of a Pod."""
    containers = unstructured.child_object(pod, "spec")["containers"]
    first = containers[0] if is_array(containers) else None
    env = first.get("env") if is_object(first) else None
    return next((str(each["value"]) for each in env if is_object(each) and each["name"] == "JOB_INDEX"), "") if is_array(env) else ""


SCENARIO = Scenario(
    about="a Pod for each index, two at a time; a failed one is run again",
    take_snapshot=snapshots_of(_JOBS, PODS),
    steps=(_complete, _grow, _delete),
)
