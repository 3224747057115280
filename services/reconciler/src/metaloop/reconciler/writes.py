"""Requests of the API server that several writers share."""

from typing import Final

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.apply.equality import same
from metaloop.reconciler.noop_writes import stable_part
from metaloop.reconciler.ports import Api

_LOOKS: Final = 4
"""How often an object is looked at again whose status changes faster than it is deleted."""


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


async def deleted_as_observed(api: Api, info: ResourceInfo, observed: JsonObject) -> JsonObject | None:
    """Delete the version of an object that was observed. Returns it, or None if it was gone or is going already.

    If only the status has changed since, the object is deleted nevertheless: it may change all the time. Raises
    Conflict if anything else has changed, as the decision to delete may be outdated.
    """
    obj = observed
    for looks_left in reversed(range(_LOOKS + 1)):
        try:
            return await deleted(api, info, obj, resource_version=unstructured.resource_version(obj))
        except Conflict:
            live = await _live(api, info, observed)
            if live is None or unstructured.is_deleting(live):
                return None
            if not looks_left or not same(stable_part(live), stable_part(observed)):
                raise
            obj = live
    return None


async def _live(api: Api, info: ResourceInfo, observed: JsonObject) -> JsonObject | None:
    """The object as it is now. None if it is gone, or another one has its name."""
    try:
        live = await api.get(info, unstructured.namespace(observed), unstructured.name(observed))
    except NotFound:
        return None
    return live if unstructured.uid(live) == unstructured.uid(observed) else None
