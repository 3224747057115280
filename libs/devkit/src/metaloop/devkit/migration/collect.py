"""Reads what a live cluster holds of each installed controller of Metacontroller."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Final

from metaloop.common.api.controller import Controller
from metaloop.common.api.kinds import parse_controller
from metaloop.common.api.revision import REVISIONS
from metaloop.common.errors import InvalidSpec, Refused
from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.devkit.dryrun.controllers import installed, served_by
from metaloop.devkit.migration.findings import ControllerFacts

_PAGE: Final = "500"
_WORKLOADS: Final = tuple(
    ResourceInfo(api_version="apps/v1", resource=plural, kind=kind, namespaced=True)
    for plural, kind in (("deployments", "Deployment"), ("statefulsets", "StatefulSet"))
)
_IMAGE: Final = "metacontroller"


async def facts_of_all(kube: KubeClient) -> AsyncIterator[ControllerFacts]:
    """The facts of every installed controller. Of what may not be listed, nothing is known."""
    served = await served_by(kube)
    revisions = [obj async for obj in _objects(kube, REVISIONS)] if REVISIONS.id in served else []
    for raw in await installed(kube, kind="", name=""):
        try:
            controller = parse_controller(raw)
        except InvalidSpec:
            yield ControllerFacts(raw=raw, served=served)
            continue
        yield ControllerFacts(
            raw=raw,
            served=served,
            parents=[parent async for parent in _parents(kube, controller, served)],
            children=[child async for child in _all(kube, (rule.resource for rule in controller.children), served)],
            revisions=revisions,
        )


async def running_metacontrollers(kube: KubeClient) -> list[str]:
    """The workloads that run Metacontroller, as `kind namespace/name`, unless they are scaled to nothing."""
    found = [obj for info in _WORKLOADS async for obj in _objects(kube, info)]
    return [f"{unstructured.kind(obj)} {unstructured.namespace(obj)}/{unstructured.name(obj)}" for obj in found if _is_metacontroller(obj)]


async def _parents(kube: KubeClient, controller: Controller, served: Mapping[ResourceId, ResourceInfo]) -> AsyncIterator[JsonObject]:
    for rule in controller.parents:
        async for obj in _all(kube, (rule.resource,), served):
            labels, annotations = unstructured.labels(obj), unstructured.annotations(obj)
            if rule.selects(labels=labels, annotations=annotations) or controller.finalizer in unstructured.finalizers(obj):
                yield obj


async def _all(kube: KubeClient, resources: Iterable[ResourceId], served: Mapping[ResourceId, ResourceInfo]) -> AsyncIterator[JsonObject]:
    for resource in resources:
        if resource in served:
            async for obj in _objects(kube, served[resource]):
                yield obj


async def _objects(kube: KubeClient, info: ResourceInfo) -> AsyncIterator[JsonObject]:
    """All objects of a resource, page by page."""
    params = {"limit": _PAGE}
    while params:
        try:
            page = await kube.list_page(info, "", params)
        except Refused:
            return
        for item in unstructured.child_objects(page, "items"):
            yield {**item, "apiVersion": info.api_version, "kind": info.kind}
        token = unstructured.text(unstructured.metadata(page), "continue")
        params = {"limit": _PAGE, "continue": token} if token else {}


def _is_metacontroller(workload: JsonObject) -> bool:
    spec = unstructured.child_object(workload, "spec")
    pod = unstructured.child_object(unstructured.child_object(spec, "template"), "spec")
    images = [unstructured.text(container, "image") for container in unstructured.child_objects(pod, "containers")]
    names = [image.partition("@")[0].rpartition("/")[2].partition(":")[0] for image in images]
    return spec.get("replicas", 1) != 0 and _IMAGE in names
