"""Service per Pod: two decorators give a StatefulSet what it lacks, and take it back when it opts out."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.demo.sight import Objects, is_ready
from metaloop.devkit.demo.stage import Stage, Tale, seeing
from metaloop.devkit.testbed.builtin import PODS, SERVICES, STATEFUL_SETS

_PORTS = "service-per-pod.example.com/ports"


async def _decorate(stage: Stage[Objects]) -> None:
    stage.view.begin("a StatefulSet of 3 Pods asks for a Service for each of them")
    await stage.world.apply("statefulset.yaml")
    sight = await stage.until(lambda sight: _addresses(sight, stage).keys() == _pods(stage, 3) and _labelled(sight, stage, 3))
    stage.view.end(f"each Pod is labelled with its name, and has a Service that selects it: {_told(_addresses(sight, stage))}")


async def _scale(stage: Stage[Objects]) -> None:
    stage.view.begin("it is scaled to 5")
    before = _addresses(await stage.look(stage.world), stage)
    await stage.change(STATEFUL_SETS, "shop", {"spec": {"replicas": 5}})
    await stage.until(lambda sight: _addresses(sight, stage).keys() == _pods(stage, 5) and _labelled(sight, stage, 5))
    await stage.until(lambda sight: before.items() <= _addresses(sight, stage).items())
    stage.view.end("two Services more, and the others have kept their addresses")


async def _repair(stage: Stage[Objects]) -> None:
    stage.view.begin("somebody deletes the Service of shop-1, and somebody else breaks that of shop-2")
    await stage.delete(SERVICES, "shop-1")
    await stage.change(SERVICES, "shop-2", {"spec": {"selector": {"pod-name": "nobody"}}})
    await stage.until(lambda sight: _addresses(sight, stage).keys() == _pods(stage, 5))
    stage.view.end("both are as they were")


async def _shrink(stage: Stage[Objects]) -> None:
    stage.view.begin("it is scaled to 2")
    await stage.change(STATEFUL_SETS, "shop", {"spec": {"replicas": 2}})
    await stage.until(lambda sight: _addresses(sight, stage).keys() == _pods(stage, 2) and _labelled(sight, stage, 2))
    stage.view.end("the Services of the Pods that went are gone")


async def _opt_out(stage: Stage[Objects]) -> None:
    stage.view.begin("it opts out: the annotation is removed")
    await stage.change(STATEFUL_SETS, "shop", {"metadata": {"annotations": {_PORTS: None}}})
    await stage.until(lambda sight: not _addresses(sight, stage) and not _finalizers(sight, stage))
    stage.view.end("no Service is left and no finalizer; the StatefulSet and its Pods are untouched")


def _pods(stage: Stage[Objects], replicas: int) -> set[str]:
    return {f"{stage.world.namespace}/shop-{index}" for index in range(replicas)}


def _addresses(sight: Objects, stage: Stage[Objects]) -> dict[str, str]:
    """The addresses of the Services that select the Pod of their own name."""
    found = {key: unstructured.child_object(service, "spec") for key, service in sight.of("Service").items() if _is_here(key, stage)}
    return {key: unstructured.text(spec, "clusterIP") for key, spec in found.items() if _selects(spec, key)}


def _selects(spec: JsonObject, key: str) -> bool:
    return unstructured.child_object(spec, "selector") == {"pod-name": key.rpartition("/")[2]}


def _labelled(sight: Objects, stage: Stage[Objects], replicas: int) -> bool:
    pods = [pod for key, pod in sight.of("Pod").items() if _is_here(key, stage)]
    return len(pods) == replicas and all(
        is_ready(pod) and unstructured.labels(pod).get("pod-name") == unstructured.name(pod) for pod in pods
    )


def _finalizers(sight: Objects, stage: Stage[Objects]) -> list[str]:
    return unstructured.finalizers(sight.get("StatefulSet", f"{stage.world.namespace}/shop"))


def _is_here(key: str, stage: Stage[Objects]) -> bool:
    return key.startswith(f"{stage.world.namespace}/")


def _told(addresses: dict[str, str]) -> str:
    return ", ".join(f"{key.rpartition('/')[2]} at {address}" for key, address in addresses.items())


TALE = Tale(
    about="two decorators give each Pod of a StatefulSet a Service of its own, and take it back when it opts out",
    look=seeing(STATEFUL_SETS, PODS, SERVICES),
    scenes=(_decorate, _scale, _repair, _shrink, _opt_out),
)
