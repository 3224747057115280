"""Finds the objects of a resource that have a finalizer, and removes it from one."""

from collections.abc import AsyncIterator
from typing import Final

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject, dumps, is_array, is_object
from metaloop.common.kube.body import object_of
from metaloop.common.kube.client import MERGE_PATCH, KubeClient
from metaloop.common.kube.errors import Expired, NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo

_METADATA_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_PAGE: Final = "500"
_LIST_TRIES: Final = 3


async def holders(kube: KubeClient, info: ResourceInfo, finalizer: str) -> list[JsonObject]:
    """The metadata of all objects of a resource that have the finalizer, as they are now.

    Raises what KubeClient raises.
    """
    for _ in range(_LIST_TRIES - 1):
        try:
            return [each async for each in _holders(kube, info, finalizer)]
        except Expired:
            continue
    return [each async for each in _holders(kube, info, finalizer)]


async def _holders(kube: KubeClient, info: ResourceInfo, finalizer: str) -> AsyncIterator[JsonObject]:
    params = {"limit": _PAGE}
    while True:
        page = object_of(await kube.request("GET", info.collection_path(), params=params, accept=_METADATA_ONLY))
        items = page.get("items")
        for item in items if is_array(items) else ():
            if is_object(item) and finalizer in unstructured.finalizers(item):
                yield item
        resume = unstructured.text(unstructured.metadata(page), "continue")
        if not resume:
            return
        params = {"limit": _PAGE, "continue": resume}


async def release(kube: KubeClient, info: ResourceInfo, obj: JsonObject, finalizer: str) -> bool:
    """Remove the finalizer from one object; returns whether this write did it.

    False also when the object changed in the meantime: read it again then.
    """
    rest = [each for each in unstructured.finalizers(obj) if each != finalizer]
    metadata: JsonObject = {
        "uid": unstructured.uid(obj),
        "resourceVersion": unstructured.resource_version(obj),
        "finalizers": [*rest],
    }
    body = dumps({"metadata": metadata})
    try:
        await kube.patch(info, unstructured.namespace(obj), unstructured.name(obj), body, MERGE_PATCH)
    except (NotFound, Conflict):
        return False
    return True
