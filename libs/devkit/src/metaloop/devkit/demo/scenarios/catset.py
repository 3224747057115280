"""CatSet: a StatefulSet as a custom resource, whose Pods are created in order, and updated in reverse order."""

from collections.abc import Mapping

from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun, snapshots_of
from metaloop.devkit.demo.snapshot import Objects, is_ready
from metaloop.devkit.testbed.builtin import CLAIMS, PODS

_CATSETS = ResourceInfo(api_version="example.com/v1", resource="catsets", kind="CatSet", namespaced=True, has_status=True)


async def _create(run: ScenarioRun[Objects]) -> None:
    run.output.begin("a CatSet of 3 Pods is created; the second Pod is not ready yet")
    run.kubelet.is_unready = lambda pod: unstructured.name(pod) == "cat-1"
    await run.apply("catset.yaml")
    await run.until(lambda snapshot: _ready(snapshot, run) == {"cat-0": True, "cat-1": False})
    run.kubelet.make_all_ready()
    await run.until(lambda snapshot: _ready(snapshot, run) == _all_ready(3))
    run.output.end("the third Pod was created only when the second was ready; each has its own volume")


async def _update(run: ScenarioRun[Objects]) -> None:
    run.output.begin("its template is changed; the first updated Pod is not ready yet")
    before = _uids(await run.snapshot(), run)
    run.kubelet.is_unready = lambda pod: _color(pod) == "ginger"
    await _recolor(run, "ginger")
    await run.until(lambda snapshot: _colors(snapshot, run).get("cat-2") == "ginger" and not _ready(snapshot, run)["cat-2"])
    snapshot = await run.until(lambda snapshot: _condition(snapshot, run) == "RolloutWaiting")
    kept = {name for name, uid in _uids(snapshot, run).items() if before[name] == uid}
    run.output.end(f"the last Pod is replaced; the rollout waits for it, and {' and '.join(sorted(kept))} keep running")


async def _finish(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the Pod becomes ready")
    claims = set(_claims(await run.snapshot(), run))
    run.kubelet.make_all_ready()
    ginger = {f"cat-{index}": "ginger" for index in range(3)}
    await run.until(lambda snapshot: _colors(snapshot, run) == ginger and _ready(snapshot, run) == _all_ready(3))
    await run.until(lambda snapshot: _condition(snapshot, run) == "OnLatestRevision" and set(_claims(snapshot, run)) == claims)
    run.output.end("the other Pods are updated one by one; each keeps its volume")


async def _scale(run: ScenarioRun[Objects]) -> None:
    run.output.begin("it is scaled to 4, and then to 2")
    before = _uids(await run.snapshot(), run)
    await run.change(_CATSETS, "cat", {"spec": {"replicas": 4}})
    await run.until(lambda snapshot: _ready(snapshot, run) == _all_ready(4))
    await run.change(_CATSETS, "cat", {"spec": {"replicas": 2}})
    snapshot = await run.until(lambda snapshot: _ready(snapshot, run) == _all_ready(2) and _uids(snapshot, run).items() <= before.items())
    run.output.end(f"no Pod is replaced, because replicas are not part of a revision; {len(_claims(snapshot, run))} volumes are kept")


async def _delete(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the CatSet is deleted")
    await run.delete(_CATSETS, "cat")
    await run.until(lambda snapshot: not _uids(snapshot, run) and not snapshot.of("CatSet"))
    run.output.end("its finalize hook deletes the Pods in reverse order")


async def _recolor(run: ScenarioRun[Objects], color: str) -> None:
    await run.change(_CATSETS, "cat", {"spec": {"template": {"metadata": {"labels": {"color": color}}}}})


def _pods(snapshot: Objects, run: ScenarioRun[Objects]) -> Mapping[str, JsonObject]:
    """The Pods by their names."""
    return {unstructured.name(pod): pod for key, pod in snapshot.of("Pod").items() if key.startswith(f"{run.namespace}/cat-")}


def _claims(snapshot: Objects, run: ScenarioRun[Objects]) -> list[str]:
    return [key for key in snapshot.of("PersistentVolumeClaim") if key.startswith(f"{run.namespace}/home-cat-")]


def _ready(snapshot: Objects, run: ScenarioRun[Objects]) -> dict[str, bool]:
    return {name: is_ready(pod) for name, pod in _pods(snapshot, run).items()}


def _all_ready(replicas: int) -> dict[str, bool]:
    return {f"cat-{index}": True for index in range(replicas)}


def _uids(snapshot: Objects, run: ScenarioRun[Objects]) -> dict[str, str]:
    return {name: unstructured.uid(pod) for name, pod in _pods(snapshot, run).items()}


def _color(pod: JsonObject) -> str:
    return unstructured.labels(pod).get("color", "")


def _colors(snapshot: Objects, run: ScenarioRun[Objects]) -> dict[str, str]:
    return {name: _color(pod) for name, pod in _pods(snapshot, run).items()}


def _condition(snapshot: Objects, run: ScenarioRun[Objects]) -> object:
    """The reason of the condition `Updated`."""
    conditions = unstructured.child_object(snapshot.get("CatSet", f"{run.namespace}/cat"), "status").get("conditions")
    found = [each for each in conditions if is_object(each) and each["type"] == "Updated"] if is_array(conditions) else []
    return found[0].get("reason") if found else None


SCENARIO = Scenario(
    about="Pods with stable names and volumes, created in order and updated in reverse order",
    take_snapshot=snapshots_of(_CATSETS, PODS, CLAIMS),
    steps=(_create, _update, _finish, _scale, _delete),
)
