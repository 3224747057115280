"""Recreates children: one is deleted only if the update would change it, and if its successor can be created.

Rules
    1. A dry run of the update on the API server shows whether it would change the child. The API server stores some
       values in another form than it was sent. If that counted as a difference, the child would be deleted and created
       for ever.
    2. A child that the update would not change is updated: the record of what was applied may be new.
    3. If the API server refuses the successor, the child stays, and the author of the hook has to fix the answer.
"""

from dataclasses import dataclass
from typing import Final

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.errors import Conflict, Refused
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import AlreadyExists, Invalid, NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.apply.equality import same
from metaloop.reconciler.core.model import DeleteChild, RecreateChild
from metaloop.reconciler.ports import Api
from metaloop.reconciler.server_side_writer import DRY_RUN, ServerSideWriter
from metaloop.reconciler.writes import deleted

_OBSTACLES_OF_DRY_RUN: Final = ("exceeded quota", "already allocated", "does not support dry run")
"""Refusals that end with the old child, or concern the dry run only."""
_BOOKKEEPING: Final = frozenset({"managedFields", "resourceVersion", "generation"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreation:
    """Deletes children that are to be created again."""

    server_side: ServerSideWriter

    async def is_needed(self, action: RecreateChild, *, api: Api) -> bool:
        """Whether the child has to be deleted. Raises Conflict if it was changed meanwhile."""
        try:
            result = await self._dry_run(action, api)
        except Invalid:
            return True
        except NotFound as error:
            raise Conflict("it was deleted meanwhile") from error
        except Refused as error:
            if _is_obstacle_of_dry_run(error):
                return True
            raise
        if unstructured.resource_version(result) != unstructured.resource_version(action.observed):
            raise Conflict("it was changed meanwhile")
        return not same(_compared(result), _compared(action.observed))

    async def delete(self, action: DeleteChild, *, api: Api, resource_version: str = "") -> JsonObject | None:
        """Deletes a child. Returns it, or None if it was gone.

        Raises Refused if its successor can't be created; the child then stays. Raises Conflict if it is another object
        or version.
        """
        if action.successor is not None:
            await _require_creatable(action.info, action.successor, api)
        return await deleted(api, action.info, action.obj, resource_version=resource_version)

    async def _dry_run(self, action: RecreateChild, api: Api) -> JsonObject:
        if action.is_applied:
            return await self.server_side.dry_run(action, api=api)
        return await api.replace(action.info, action.obj, params=DRY_RUN)


async def _require_creatable(info: ResourceInfo, desired: JsonObject, api: Api) -> None:
    """Raises Refused if the API server refuses the object, but not for its name: it checks that last."""
    try:
        await api.create(info, desired, params=DRY_RUN)
    except AlreadyExists:
        return
    except Refused as error:
        if not _is_obstacle_of_dry_run(error):
            raise


def _is_obstacle_of_dry_run(error: Refused) -> bool:
    """Whether only the old child, or the dry run itself, is in the way."""
    return any(obstacle in str(error) for obstacle in _OBSTACLES_OF_DRY_RUN)


def _compared(obj: JsonObject) -> JsonObject:
    """The part of a child that makes a difference: not its bookkeeping, its status or the last applied annotation."""
    metadata = {key: value for key, value in unstructured.metadata(obj).items() if key not in _BOOKKEEPING}
    others = {key: value for key, value in unstructured.annotations(obj).items() if key != LAST_APPLIED_ANNOTATION}
    metadata["annotations"] = {**others} or None
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}
