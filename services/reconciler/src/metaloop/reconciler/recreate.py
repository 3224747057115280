"""Recreation, as requests: a child is only deleted to be created anew if that changes anything, and if it could be created.

Rules
    1. The API server itself is asked, in a dry run, whether the update would change the child. It keeps some things in another form than it was told; taking that
       for a difference would delete and create the child for ever.
    2. A child that the update would not change is updated: what is remembered of it, or owned, may be new.
    3. What the API server refuses altogether is the hook's to mend, and costs no child.
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

_NO_REFUSALS: Final = ("exceeded quota", "already allocated", "does not support dry run")
_COMPARED_NOT: Final = frozenset({"managedFields", "resourceVersion", "generation"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreation:
    """Makes room for children to be created anew."""

    api: Api
    server_side: ServerSideWriter

    async def is_needed(self, action: RecreateChild) -> bool:
        """Whether the child must go. Raises Conflict where it was changed meanwhile."""
        try:
            result = await self._tried(action)
        except Invalid:
            return True
        except NotFound as error:
            raise Conflict("it was deleted meanwhile") from error
        except Refused as error:
            if _is_no_refusal(error):
                return True
            raise
        if unstructured.resource_version(result) != unstructured.resource_version(action.observed):
            raise Conflict("it was changed meanwhile")
        return not same(_compared(result), _compared(action.observed))

    async def delete(self, action: DeleteChild, *, resource_version: str = "") -> JsonObject | None:
        """The child that is going now, None if it was gone.

        Raises Refused, with the child untouched, where its successor could not be created, and Conflict where it isn't the one of this version any more.
        """
        if action.successor is not None:
            await self._refuse_if_never_possible(action.info, action.successor)
        return await deleted(self.api, action.info, action.obj, resource_version=resource_version)

    async def _tried(self, action: RecreateChild) -> JsonObject:
        if action.is_applied:
            return await self.server_side.tried(action)
        return await self.api.replace(action.info, action.obj, params=DRY_RUN)

    async def _refuse_if_never_possible(self, info: ResourceInfo, desired: JsonObject) -> None:
        """Raises what the API server says against creating it, beside that its name is taken: that is the last thing that is looked at."""
        try:
            await self.api.create(info, desired, params=DRY_RUN)
        except AlreadyExists:
            return
        except Refused as error:
            if not _is_no_refusal(error):
                raise


def _is_no_refusal(error: Refused) -> bool:
    """Whether only the old child itself, or the dry run, is in the way."""
    return any(obstacle in str(error) for obstacle in _NO_REFUSALS)


def _compared(obj: JsonObject) -> JsonObject:
    """What of a child makes it another: neither its bookkeeping nor its status, nor what we remember of it."""
    metadata = {key: value for key, value in unstructured.metadata(obj).items() if key not in _COMPARED_NOT}
    others = {key: value for key, value in unstructured.annotations(obj).items() if key != LAST_APPLIED_ANNOTATION}
    metadata["annotations"] = {**others} or None
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}
