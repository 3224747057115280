"""Service per Pod: two decorators add a Service for each Pod of a StatefulSet, and remove them when it opts out."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun, snapshots_of
from metaloop.devkit.demo.snapshot import Objects, is_ready
from metaloop.devkit.testbed.builtin import PODS, SERVICES, STATEFUL_SETS

_PORTS = "service-per-pod.example.com/ports"


async def _decorate(run: ScenarioRun[Objects]) -> None:
    run.output.begin("a StatefulSet of 3 Pods opts in to a Service for each Pod")
    await run.apply("statefulset.yaml")
    snapshot = await run.until(lambda snapshot: _addresses(snapshot, run).keys() == _pods(run, 3) and _labelled(snapshot, run, 3))
    run.output.end(f"each Pod is labelled with its name, and a Service selects it: {_text_of(_addresses(snapshot, run))}")


async def _scale(run: ScenarioRun[Objects]) -> None:
    run.output.begin("it is scaled to 5")
    before = _addresses(await run.snapshot(), run)
    await run.change(STATEFUL_SETS, "shop", {"spec": {"replicas": 5}})
    await run.until(lambda snapshot: _addresses(snapshot, run).keys() == _pods(run, 5) and _labelled(snapshot, run, 5))
    await run.until(lambda snapshot: before.items() <= _addresses(snapshot, run).items())
    run.output.end("two Services are added; the others keep their addresses")


async def _repair(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the Service of shop-1 is deleted by hand, and the selector of that of shop-2 is changed")
    await run.delete(SERVICES, "shop-1")
    await run.change(SERVICES, "shop-2", {"spec": {"selector": {"pod-name": "nobody"}}})
    await run.until(lambda snapshot: _addresses(snapshot, run).keys() == _pods(run, 5))
    run.output.end("both are repaired")


async def _shrink(run: ScenarioRun[Objects]) -> None:
    run.output.begin("it is scaled to 2")
    await run.change(STATEFUL_SETS, "shop", {"spec": {"replicas": 2}})
    await run.until(lambda snapshot: _addresses(snapshot, run).keys() == _pods(run, 2) and _labelled(snapshot, run, 2))
    run.output.end("the Services of the removed Pods are deleted")


async def _opt_out(run: ScenarioRun[Objects]) -> None:
    run.output.begin("it opts out: its annotation is removed")
    await run.change(STATEFUL_SETS, "shop", {"metadata": {"annotations": {_PORTS: None}}})
    await run.until(lambda snapshot: not _addresses(snapshot, run) and not _finalizers(snapshot, run))
    run.output.end("all Services and the finalizer are removed; the StatefulSet and its Pods stay as they are")


def _pods(run: ScenarioRun[Objects], replicas: int) -> set[str]:
    return {f"{run.namespace}/shop-{index}" for index in range(replicas)}


def _addresses(snapshot: Objects, run: ScenarioRun[Objects]) -> dict[str, str]:
    """The addresses of the Services that select the Pod of the same name."""
    found = {key: unstructured.child_object(service, "spec") for key, service in snapshot.of("Service").items() if _is_here(key, run)}
    return {key: unstructured.text(spec, "clusterIP") for key, spec in found.items() if _selects(spec, key)}


def _selects(spec: JsonObject, key: str) -> bool:
    return unstructured.child_object(spec, "selector") == {"pod-name": key.rpartition("/")[2]}


def _labelled(snapshot: Objects, run: ScenarioRun[Objects], replicas: int) -> bool:
    pods = [pod for key, pod in snapshot.of("Pod").items() if _is_here(key, run)]
    return len(pods) == replicas and all(
        is_ready(pod) and unstructured.labels(pod).get("pod-name") == unstructured.name(pod) for pod in pods
    )


def _finalizers(snapshot: Objects, run: ScenarioRun[Objects]) -> list[str]:
    return unstructured.finalizers(snapshot.get("StatefulSet", f"{run.namespace}/shop"))


def _is_here(key: str, run: ScenarioRun[Objects]) -> bool:
    return key.startswith(f"{run.namespace}/")


def _text_of(addresses: dict[str, str]) -> str:
    return ", ".join(f"{key.rpartition('/')[2]} at {address}" for key, address in addresses.items())


SCENARIO = Scenario(
    about="two decorators add a Service for each Pod of a StatefulSet, and remove them when it opts out",
    take_snapshot=snapshots_of(STATEFUL_SETS, PODS, SERVICES),
    steps=(_decorate, _scale, _repair, _shrink, _opt_out),
)
