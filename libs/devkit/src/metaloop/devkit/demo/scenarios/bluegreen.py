"""Blue-green: a new version starts beside the old one, and gets the traffic when all of its Pods are ready."""

from metaloop.common.json import JsonObject, JsonValue, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun, snapshots_of
from metaloop.devkit.demo.snapshot import Objects
from metaloop.devkit.testbed.builtin import PODS, REPLICA_SETS, SERVICES

_DEPLOYMENTS = ResourceInfo(
    api_version="example.com/v1", resource="bluegreendeployments", kind="BlueGreenDeployment", namespaced=True, has_status=True
)
_COLOR = "bluegreen.example.com/color"


async def _start(run: ScenarioRun[Objects]) -> None:
    run.output.begin("a BlueGreenDeployment of 3 Pods is created")
    await run.apply("bluegreen.yaml")
    await run.until(lambda snapshot: _selected(snapshot, run) == "blue" and _ready(snapshot, run) == {"blue": 3, "green": 0})
    run.output.end("blue is ready and has the traffic; green has no Pods")


async def _roll_out(run: ScenarioRun[Objects]) -> None:
    run.output.begin("its template is changed; the new Pods are not ready yet")
    run.kubelet.is_unready = lambda pod: _version(pod) == "2"
    before = _pods(await run.snapshot(), run)
    await _change(run, "2")
    await run.until(lambda snapshot: len(_pods(snapshot, run)) == 6)
    await run.until(
        lambda snapshot: before <= _pods(snapshot, run) and _is_serving(snapshot, run, "blue") and _ready(snapshot, run)["green"] == 0
    )
    run.output.end("green starts; blue keeps its Pods and all the traffic")


async def _switch(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the new Pods become ready")
    run.kubelet.make_all_ready()
    await run.until(lambda snapshot: _selected(snapshot, run) == "green" and _ready(snapshot, run) == {"blue": 0, "green": 3})
    run.output.end("green gets all the traffic at once; blue has no Pods any more")


async def _change_again(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the template is changed again, and once more before that rollout is complete")
    run.kubelet.is_unready = lambda pod: _version(pod) == "3"
    await _change(run, "3")
    await run.until(lambda snapshot: len(_pods(snapshot, run)) == 6)
    await _change(run, "4")
    await run.until(lambda snapshot: _is_serving(snapshot, run, "blue") and _versions(snapshot, run) == {"4"})
    run.output.end("the outdated version is dropped; the last one is rolled out, as blue")


async def _change(run: ScenarioRun[Objects], version: str) -> None:
    """Set the version in the environment of the Pod template."""
    found = await run.cluster.get(_DEPLOYMENTS, run.namespace, "web")
    template = unstructured.child_object(unstructured.child_object(found, "spec"), "template")
    containers: list[JsonValue] = [{**container, "env": [{"name": "VERSION", "value": version}]} for container in _containers(template)]
    await run.change(_DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"containers": containers}}}})


def _containers(pod: JsonObject) -> list[JsonObject]:
    containers = unstructured.child_object(pod, "spec").get("containers")
    return [each for each in containers if is_object(each)] if is_array(containers) else []


def _version(pod: JsonObject) -> str:
    """The version in the environment of a Pod; the first one has none."""
    env = _containers(pod)[0].get("env")
    return str(env[0]["value"]) if is_array(env) and is_object(env[0]) else ""


def _pods(snapshot: Objects, run: ScenarioRun[Objects]) -> set[str]:
    """The Pods that are not being deleted."""
    here = f"{run.namespace}/web-"
    return {key for key, pod in snapshot.of("Pod").items() if key.startswith(here) and not unstructured.is_deleting(pod)}


def _versions(snapshot: Objects, run: ScenarioRun[Objects]) -> set[str]:
    return {_version(snapshot.get("Pod", key)) for key in _pods(snapshot, run)}


def _selected(snapshot: Objects, run: ScenarioRun[Objects]) -> object:
    """The colour that has the traffic."""
    spec = unstructured.child_object(snapshot.get("Service", f"{run.namespace}/web"), "spec")
    return unstructured.child_object(spec, "selector").get(_COLOR)


def _ready(snapshot: Objects, run: ScenarioRun[Objects]) -> dict[str, int]:
    """How many Pods of each colour are ready."""
    sets = {color: snapshot.get("ReplicaSet", f"{run.namespace}/web-{color}") for color in ("blue", "green")}
    return {color: unstructured.integer(unstructured.child_object(each, "status"), "readyReplicas") for color, each in sets.items()}


def _is_serving(snapshot: Objects, run: ScenarioRun[Objects], color: str) -> bool:
    """Whether a colour has the traffic, and all of its Pods are ready."""
    return _selected(snapshot, run) == color and _ready(snapshot, run)[color] == 3


SCENARIO = Scenario(
    about="a new version starts beside the old one, and gets the traffic when all of its Pods are ready",
    take_snapshot=snapshots_of(_DEPLOYMENTS, REPLICA_SETS, SERVICES, PODS),
    steps=(_start, _roll_out, _switch, _change_again),
)
