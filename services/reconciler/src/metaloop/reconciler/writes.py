"""Requests that mean the same wherever they are sent."""

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.ports import Api


async def replaced(api: Api, info: ResourceInfo, obj: JsonObject) -> JsonObject:
    """The object as it is, replaced by `obj`. Raises Conflict where it isn't the one of this UID and version any more, or gone."""
    try:
        return await api.replace(info, obj)
    except NotFound as error:
        raise Conflict("it was deleted meanwhile") from error


async def deleted(api: Api, info: ResourceInfo, obj: JsonObject, *, resource_version: str = "") -> JsonObject | None:
    """The object that is going now, None if it was gone. Raises Conflict where it isn't the one of this UID any more, or of this version where one is given."""
    try:
        await api.delete(
            info, unstructured.namespace(obj), unstructured.name(obj), uid=unstructured.uid(obj), resource_version=resource_version
        )
    except NotFound:
        return None
    return obj
