"""Indexed job: a Pod for each index, two at a time; one that fails is run again."""

from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.sight import Objects
from metaloop.devkit.demo.stage import Stage, Tale, seeing
from metaloop.devkit.errors import DevkitError
from metaloop.devkit.testbed.builtin import PODS

_JOBS = ResourceInfo(api_version="example.com/v1", resource="indexedjobs", kind="IndexedJob", namespaced=True, has_status=True)
_PARALLELISM = 2


async def _run(stage: Stage[Objects]) -> None:
    stage.view.begin("a job of 5 indexes runs two of them at a time; the third fails when it first runs")
    stage.kubelet.failing.add("count-2")
    await stage.world.apply("job.yaml")
    sight = await stage.until(lambda sight: _is_within_bounds(sight, stage) and _succeeded(sight, stage) == 5)
    indexes = sorted(_index(pod) for pod in _pods(sight, stage).values())
    stage.view.end(f"all have succeeded, never more than two ran at once, and each knew its index: {', '.join(indexes)}")


async def _grow(stage: Stage[Objects]) -> None:
    stage.view.begin("two indexes more are asked for")
    before = {unstructured.uid(pod) for pod in _pods(await stage.look(stage.world), stage).values()}
    await stage.change(_JOBS, "count", {"spec": {"completions": 7}})
    sight = await stage.until(lambda sight: _is_within_bounds(sight, stage) and _succeeded(sight, stage) == 7)
    after = {unstructured.uid(pod) for pod in _pods(sight, stage).values()}
    stage.view.end(f"{len(after - before)} more have run, and none of the others again")


async def _delete(stage: Stage[Objects]) -> None:
    stage.view.begin("the job is deleted (the garbage collector may take 40 s to notice so new a kind)")
    await stage.delete(_JOBS, "count")
    await stage.until(lambda sight: not _pods(sight, stage))
    stage.view.end("its Pods are gone")


def _pods(sight: Objects, stage: Stage[Objects]) -> dict[str, JsonObject]:
    return {key: pod for key, pod in sight.of("Pod").items() if key.startswith(f"{stage.world.namespace}/count-")}


def _is_within_bounds(sight: Objects, stage: Stage[Objects]) -> bool:
    """True; raises DevkitError where more Pods run than may."""
    phases = [unstructured.child_object(pod, "status").get("phase") for pod in _pods(sight, stage).values()]
    running = sum(phase in {"Pending", "Running"} for phase in phases)
    if running > _PARALLELISM:
        raise DevkitError(f"{running} Pods run at once, more than {_PARALLELISM}")
    return True


def _succeeded(sight: Objects, stage: Stage[Objects]) -> object:
    """How many the job counts."""
    status = unstructured.child_object(sight.get("IndexedJob", f"{stage.world.namespace}/count"), "status")
    return status.get("succeeded")


def _index(pod: JsonObject) -> str:
    """The index in a Pod's environment."""
    containers = unstructured.child_object(pod, "spec")["containers"]
    first = containers[0] if is_array(containers) else None
    env = first.get("env") if is_object(first) else None
    return next((str(each["value"]) for each in env if is_object(each) and each["name"] == "JOB_INDEX"), "") if is_array(env) else ""


TALE = Tale(
    about="a Pod for each index, two at a time; one that fails is run again",
    look=seeing(_JOBS, PODS),
    scenes=(_run, _grow, _delete),
)
