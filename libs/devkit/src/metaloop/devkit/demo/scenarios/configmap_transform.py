"""ConfigMap transform: for each ConfigMap that a transform selects there is one in upper case."""

from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun, snapshots_of
from metaloop.devkit.demo.snapshot import Objects
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.testbed.manifests import config_map

_TRANSFORMS = ResourceInfo(
    api_version="example.com/v1", resource="configmaptransforms", kind="ConfigMapTransform", namespaced=True, has_status=True
)


async def _transform(run: ScenarioRun[Objects]) -> None:
    run.output.begin("a transform selects a ConfigMap")
    await run.apply("transform.yaml")
    await run.until(lambda snapshot: _texts(run, snapshot) == {"motto": "festina lente", "motto-loud": "FESTINA LENTE"})
    run.output.end("there is a copy of it in upper case, which the transform controls")


async def _add_inputs(run: ScenarioRun[Objects]) -> None:
    run.output.begin("twenty more ConfigMaps are created with the label")
    for number in range(20):
        source = config_map(f"more-{number}", labels={"transform": "yes"}, data={"text": f"more {number}"})
        await run.cluster.create(CONFIG_MAPS, source, namespace=run.namespace)
    await run.until(lambda snapshot: len(_outputs(run, snapshot)) == 21 and _inputs(run, snapshot) == 21)
    run.output.end("each has its copy, and the status counts 21 inputs and 21 outputs")


async def _edit(run: ScenarioRun[Objects]) -> None:
    run.output.begin("one input is changed, and the output of another by hand")
    await run.change(CONFIG_MAPS, "motto", {"data": {"text": "carpe diem"}})
    await run.change(CONFIG_MAPS, "more-0-loud", {"data": {"text": "mine"}})
    await run.until(lambda snapshot: _outputs(run, snapshot)["motto-loud"] == "CARPE DIEM")
    await run.until(lambda snapshot: _outputs(run, snapshot)["more-0-loud"] == "MORE 0")
    run.output.end("both outputs are right again")


async def _select_everything(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the selector is removed, so that the transform selects everything, its own outputs included")
    await run.change(_TRANSFORMS, "loud", {"spec": {"selector": None}})
    await run.until(lambda snapshot: _inputs(run, snapshot) == len(_outputs(run, snapshot)) and _has_each_copied(run, snapshot))
    run.output.end("every other ConfigMap has one copy, and no copy has one: what a parent controls is never its own input")


async def _relabel(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the selector comes back, and a ConfigMap loses its label")
    await run.change(_TRANSFORMS, "loud", {"spec": {"selector": {"matchLabels": {"transform": "yes"}}}})
    await run.change(CONFIG_MAPS, "motto", {"metadata": {"labels": {"transform": None}}})
    await run.until(lambda snapshot: len(_outputs(run, snapshot)) == 20 and "motto-loud" not in _outputs(run, snapshot))
    run.output.end("its copy is deleted")


def _texts(run: ScenarioRun[Objects], snapshot: Objects) -> dict[str, object]:
    """The text of each ConfigMap of the scenario that has one."""
    found = {key.rpartition("/"): unstructured.child_object(obj, "data") for key, obj in snapshot.of("ConfigMap").items()}
    return {name: data["text"] for (namespace, _, name), data in found.items() if namespace == run.namespace and "text" in data}


def _outputs(run: ScenarioRun[Objects], snapshot: Objects) -> dict[str, object]:
    found = {key.rpartition("/"): obj for key, obj in snapshot.of("ConfigMap").items()}
    return {
        name: unstructured.child_object(obj, "data").get("text")
        for (namespace, _, name), obj in found.items()
        if namespace == run.namespace and "metaloop.dev/map-key" in unstructured.annotations(obj)
    }


def _has_each_copied(run: ScenarioRun[Objects], snapshot: Objects) -> bool:
    """Whether each ConfigMap of the namespace has a copy, also that of Kubernetes, which no snapshot shows."""
    names = {key.rpartition("/")[2] for key in snapshot.of("ConfigMap") if key.startswith(f"{run.namespace}/")}
    outputs = set(_outputs(run, snapshot))
    return outputs == {f"{name}-loud" for name in (names - outputs) | {"kube-root-ca.crt"}}


def _inputs(run: ScenarioRun[Objects], snapshot: Objects) -> object:
    """The number of inputs in the status."""
    status = unstructured.child_object(snapshot.get("ConfigMapTransform", f"{run.namespace}/loud"), "status")
    return unstructured.child_object(unstructured.child_object(status, "inputs"), "configmaps").get("total")


SCENARIO = Scenario(
    about="for each ConfigMap that a transform selects there is one in upper case",
    take_snapshot=snapshots_of(_TRANSFORMS, CONFIG_MAPS),
    steps=(_transform, _add_inputs, _edit, _select_everything, _relabel),
)
