"""Operator with a CRD: a definition, its operator and an instance in order; others' instances block the deletion."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun, snapshots_of
from metaloop.devkit.demo.snapshot import Objects
from metaloop.devkit.errors import DevkitError
from metaloop.devkit.testbed.builtin import DEPLOYMENTS
from metaloop.devkit.testbed.cluster import CRDS

_OPERATORS = ResourceInfo(api_version="example.com/v1", resource="beaconoperators", kind="BeaconOperator", namespaced=True, has_status=True)
_BEACONS = ResourceInfo(api_version="beacons.example.com/v1", resource="beacons", kind="Beacon", namespaced=True)
_NAME, _DEFINITION = "beacons", "beacons.beacons.example.com"


async def _install(run: ScenarioRun[Objects]) -> None:
    run.output.begin("an operator is installed: the scenario plays the kubelet, and reports its Pod as ready")
    await run.apply("operator.yaml")
    await run.until(lambda snapshot: _condition(run, snapshot)["reason"] == "Ready")
    beacon = await run.cluster.get(_BEACONS, run.namespace, "main")
    run.output.end(f"the definition came first, then the operator, then the Beacon of colour {_color(beacon)}")


async def _use(run: ScenarioRun[Objects]) -> None:
    run.output.begin("somebody else creates a Beacon, and the operator is deleted")
    theirs: JsonObject = {
        "apiVersion": _BEACONS.api_version,
        "kind": _BEACONS.kind,
        "metadata": {"name": "theirs"},
        "spec": {"color": "red"},
    }
    await run.cluster.create(_BEACONS, theirs, namespace=run.namespace)
    await run.delete(_OPERATORS, _NAME)
    snapshot = await run.until(lambda snapshot: _condition(run, snapshot)["reason"] == "DeletionBlocked")
    await run.cluster.get(_BEACONS, run.namespace, "main")
    run.output.end(f"nothing is deleted: {_condition(run, snapshot)['message']}")


async def _let_go(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the other Beacon is deleted")
    await run.delete(_BEACONS, "theirs")
    await run.until(lambda snapshot: not snapshot.of("BeaconOperator"))
    if _DEFINITION in [unstructured.name(each) for each in await run.cluster.list(CRDS, "")]:
        raise DevkitError("the operator is gone before its definition")
    run.output.end("the operator is removed, with its definition")


def _condition(run: ScenarioRun[Objects], snapshot: Objects) -> dict[str, str]:
    """The reason and the message of the condition Ready."""
    status = unstructured.child_object(snapshot.get("BeaconOperator", f"{run.namespace}/{_NAME}"), "status")
    ready = next((each for each in unstructured.child_objects(status, "conditions") if each.get("type") == "Ready"), {})
    return {name: unstructured.text(ready, name) for name in ("reason", "message")}


def _color(beacon: JsonObject) -> str:
    return unstructured.text(unstructured.child_object(beacon, "spec"), "color")


SCENARIO = Scenario(
    about="a definition, its operator and an instance in order; others' instances block the deletion",
    take_snapshot=snapshots_of(_OPERATORS, DEPLOYMENTS),
    steps=(_install, _use, _let_go),
)
