"""CatSet: a StatefulSet of one's own, whose Pods are made one after the other, and updated from the last to the first."""

from collections.abc import Mapping

from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.sight import Objects, is_ready
from metaloop.devkit.demo.stage import Stage, Tale, seeing
from metaloop.devkit.testbed.builtin import CLAIMS, PODS

_CATSETS = ResourceInfo(api_version="example.com/v1", resource="catsets", kind="CatSet", namespaced=True, has_status=True)


async def _create(stage: Stage[Objects]) -> None:
    stage.view.begin("a CatSet of 3 is created; its second Pod takes its time to become ready")
    stage.kubelet.is_slow = lambda pod: unstructured.name(pod) == "cat-1"
    await stage.world.apply("catset.yaml")
    await stage.until(lambda sight: _ready(sight, stage) == {"cat-0": True, "cat-1": False})
    stage.kubelet.hurry()
    await stage.until(lambda sight: _ready(sight, stage) == _all_ready(3))
    stage.view.end("the third was not made before the second was ready; each has a volume of its own")


async def _update(stage: Stage[Objects]) -> None:
    stage.view.begin("its template is changed; the first Pod to be updated takes its time to become ready")
    before = _uids(await stage.look(stage.world), stage)
    stage.kubelet.is_slow = lambda pod: _color(pod) == "ginger"
    await _recolor(stage, "ginger")
    await stage.until(lambda sight: _colors(sight, stage).get("cat-2") == "ginger" and not _ready(sight, stage)["cat-2"])
    sight = await stage.until(lambda sight: _condition(sight, stage) == "RolloutWaiting")
    kept = {name for name, uid in _uids(sight, stage).items() if before[name] == uid}
    stage.view.end(f"the last Pod is replaced; the update waits for it, and {' and '.join(sorted(kept))} run on as they were")


async def _finish(stage: Stage[Objects]) -> None:
    stage.view.begin("it becomes ready")
    claims = set(_claims(await stage.look(stage.world), stage))
    stage.kubelet.hurry()
    ginger = {f"cat-{index}": "ginger" for index in range(3)}
    await stage.until(lambda sight: _colors(sight, stage) == ginger and _ready(sight, stage) == _all_ready(3))
    await stage.until(lambda sight: _condition(sight, stage) == "OnLatestRevision" and set(_claims(sight, stage)) == claims)
    stage.view.end("one after the other is updated, and each has its old volume")


async def _scale(stage: Stage[Objects]) -> None:
    stage.view.begin("it is scaled to 4, and then to 2")
    before = _uids(await stage.look(stage.world), stage)
    await stage.change(_CATSETS, "cat", {"spec": {"replicas": 4}})
    await stage.until(lambda sight: _ready(sight, stage) == _all_ready(4))
    await stage.change(_CATSETS, "cat", {"spec": {"replicas": 2}})
    sight = await stage.until(lambda sight: _ready(sight, stage) == _all_ready(2) and _uids(sight, stage).items() <= before.items())
    stage.view.end(f"no Pod was replaced for it, since replicas are no part of a revision; {len(_claims(sight, stage))} volumes are kept")


async def _delete(stage: Stage[Objects]) -> None:
    stage.view.begin("it is deleted")
    await stage.delete(_CATSETS, "cat")
    await stage.until(lambda sight: not _uids(sight, stage) and not sight.of("CatSet"))
    stage.view.end("its finalize hook has let the Pods go, the last first")


async def _recolor(stage: Stage[Objects], color: str) -> None:
    await stage.change(_CATSETS, "cat", {"spec": {"template": {"metadata": {"labels": {"color": color}}}}})


def _pods(sight: Objects, stage: Stage[Objects]) -> Mapping[str, JsonObject]:
    """The Pods by their names."""
    return {unstructured.name(pod): pod for key, pod in sight.of("Pod").items() if key.startswith(f"{stage.world.namespace}/cat-")}


def _claims(sight: Objects, stage: Stage[Objects]) -> list[str]:
    return [key for key in sight.of("PersistentVolumeClaim") if key.startswith(f"{stage.world.namespace}/home-cat-")]


def _ready(sight: Objects, stage: Stage[Objects]) -> dict[str, bool]:
    return {name: is_ready(pod) for name, pod in _pods(sight, stage).items()}


def _all_ready(replicas: int) -> dict[str, bool]:
    return {f"cat-{index}": True for index in range(replicas)}


def _uids(sight: Objects, stage: Stage[Objects]) -> dict[str, str]:
    return {name: unstructured.uid(pod) for name, pod in _pods(sight, stage).items()}


def _color(pod: JsonObject) -> str:
    return unstructured.labels(pod).get("color", "")


def _colors(sight: Objects, stage: Stage[Objects]) -> dict[str, str]:
    return {name: _color(pod) for name, pod in _pods(sight, stage).items()}


def _condition(sight: Objects, stage: Stage[Objects]) -> object:
    """The reason of the condition `Updated`."""
    conditions = unstructured.child_object(sight.get("CatSet", f"{stage.world.namespace}/cat"), "status").get("conditions")
    found = [each for each in conditions if is_object(each) and each["type"] == "Updated"] if is_array(conditions) else []
    return found[0].get("reason") if found else None


TALE = Tale(
    about="Pods with names and volumes that stay, made one after the other, updated from the last to the first",
    look=seeing(_CATSETS, PODS, CLAIMS),
    scenes=(_create, _update, _finish, _scale, _delete),
)
