"""Requests of the API server that several writers share."""

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.ports import Api


async def replaced(api: Api, info: ResourceInfo, obj: JsonObject) -> JsonObject:
    """Replace an object by `obj`. Returns the new version. Raises Conflict if it was changed, replaced or deleted."""
    try:
        return await api.replace(info, obj)
    except NotFound as error:
        raise Conflict("it was deleted meanwhile") from error


async def deleted(api: Api, info: ResourceInfo, obj: JsonObject, *, resource_version: str = "") -> JsonObject | None:
    """Delete an object. Returns it, or None if it was gone.

    Raises Conflict if its UID is another, or its version is not the `resource_version`, if one is given.
    """
    try:
        await api.delete(
            info, unstructured.namespace(obj), unstructured.name(obj), uid=unstructured.uid(obj), resource_version=resource_version
        )
    except NotFound:
        return None
    return obj
