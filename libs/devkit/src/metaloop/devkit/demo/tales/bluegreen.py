"""Blue-green: a change is started beside what runs, and gets the traffic when all of it is ready."""

from metaloop.common.json import JsonObject, JsonValue, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.sight import Objects
from metaloop.devkit.demo.stage import Stage, Tale, seeing
from metaloop.devkit.testbed.builtin import PODS, REPLICA_SETS, SERVICES

_DEPLOYMENTS = ResourceInfo(
    api_version="example.com/v1", resource="bluegreendeployments", kind="BlueGreenDeployment", namespaced=True, has_status=True
)
_COLOR = "bluegreen.example.com/color"


async def _start(stage: Stage[Objects]) -> None:
    stage.view.begin("a BlueGreenDeployment of 3 Pods is created")
    await stage.world.apply("bluegreen.yaml")
    await stage.until(lambda sight: _selected(sight, stage) == "blue" and _ready(sight, stage) == {"blue": 3, "green": 0})
    stage.view.end("blue runs and has the traffic, green has no Pods")


async def _roll_out(stage: Stage[Objects]) -> None:
    stage.view.begin("it is changed; the new Pods take their time to become ready")
    stage.kubelet.is_slow = lambda pod: _version(pod) == "2"
    before = _pods(await stage.look(stage.world), stage)
    await _change(stage, "2")
    await stage.until(lambda sight: len(_pods(sight, stage)) == 6)
    await stage.until(
        lambda sight: before <= _pods(sight, stage) and _is_serving(sight, stage, "blue") and _ready(sight, stage)["green"] == 0
    )
    stage.view.end("green starts beside blue, which keeps its Pods and all the traffic")


async def _switch(stage: Stage[Objects]) -> None:
    stage.view.begin("the new Pods become ready")
    stage.kubelet.hurry()
    await stage.until(lambda sight: _selected(sight, stage) == "green" and _ready(sight, stage) == {"blue": 0, "green": 3})
    stage.view.end("green has the traffic, all at once; blue has no Pods any more")


async def _change_of_mind(stage: Stage[Objects]) -> None:
    stage.view.begin("it is changed again, and once more before that change is out")
    stage.kubelet.is_slow = lambda pod: _version(pod) == "3"
    await _change(stage, "3")
    await stage.until(lambda sight: len(_pods(sight, stage)) == 6)
    await _change(stage, "4")
    await stage.until(lambda sight: _is_serving(sight, stage, "blue") and _versions(sight, stage) == {"4"})
    stage.view.end("the change that nobody wants is dropped; the last one is out, and blue again")


async def _change(stage: Stage[Objects], version: str) -> None:
    """The Pods are to have another version in their environment."""
    found = await stage.cluster.get(_DEPLOYMENTS, stage.world.namespace, "web")
    template = unstructured.child_object(unstructured.child_object(found, "spec"), "template")
    containers: list[JsonValue] = [{**container, "env": [{"name": "VERSION", "value": version}]} for container in _containers(template)]
    await stage.change(_DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"containers": containers}}}})


def _containers(pod: JsonObject) -> list[JsonObject]:
    containers = unstructured.child_object(pod, "spec").get("containers")
    return [each for each in containers if is_object(each)] if is_array(containers) else []


def _version(pod: JsonObject) -> str:
    """The version in a Pod's environment; the first one has none."""
    env = _containers(pod)[0].get("env")
    return str(env[0]["value"]) if is_array(env) and is_object(env[0]) else ""


def _pods(sight: Objects, stage: Stage[Objects]) -> set[str]:
    """The Pods that are there to stay."""
    here = f"{stage.world.namespace}/web-"
    return {key for key, pod in sight.of("Pod").items() if key.startswith(here) and not unstructured.is_deleting(pod)}


def _versions(sight: Objects, stage: Stage[Objects]) -> set[str]:
    return {_version(sight.get("Pod", key)) for key in _pods(sight, stage)}


def _selected(sight: Objects, stage: Stage[Objects]) -> object:
    """The colour that has the traffic."""
    spec = unstructured.child_object(sight.get("Service", f"{stage.world.namespace}/web"), "spec")
    return unstructured.child_object(spec, "selector").get(_COLOR)


def _ready(sight: Objects, stage: Stage[Objects]) -> dict[str, int]:
    """How many Pods of each colour are ready."""
    sets = {color: sight.get("ReplicaSet", f"{stage.world.namespace}/web-{color}") for color in ("blue", "green")}
    return {color: unstructured.integer(unstructured.child_object(each, "status"), "readyReplicas") for color, each in sets.items()}


def _is_serving(sight: Objects, stage: Stage[Objects], color: str) -> bool:
    """Whether a colour has the traffic, and all its Pods."""
    return _selected(sight, stage) == color and _ready(sight, stage)[color] == 3


TALE = Tale(
    about="a change is started beside what runs, and gets the traffic when all of it is ready",
    look=seeing(_DEPLOYMENTS, REPLICA_SETS, SERVICES, PODS),
    scenes=(_start, _roll_out, _switch, _change_of_mind),
)
