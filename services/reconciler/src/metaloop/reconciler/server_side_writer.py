"""Server-side apply, as requests: create what must not be there yet, change what was observed.

Rules
    1. Nothing is applied to an object that we don't know to be this parent's child. A creation names a resourceVersion that no object ever has, so the API server
       refuses it where there is one; a change names the UID that was observed.
    2. Fields of other managers are taken over, as the hook says what is to be; and that is told.
"""

from dataclasses import dataclass
from typing import Final

from metaloop.common.errors import ApiStatus, Conflict
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import APPLY_PATCH, JSON_PATCH
from metaloop.common.kube.errors import AlreadyExists, Invalid, NotFound
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.apply.last_applied import is_annotated
from metaloop.reconciler.core.apply.migration import migration_of
from metaloop.reconciler.core.model import ApplyChild, RecreateChild
from metaloop.reconciler.ports import Api, Recorder

_OF_NO_OBJECT: Final = str(2**63 - 1)
"""A resourceVersion that no cluster lives to see."""
_OTHER_UID: Final = "metadata.uid: Invalid value"
_MANAGERS_CONFLICT: Final = "Apply failed with "
DRY_RUN: Final = {"dryRun": "All"}
"""Parameters of a request that is only tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSideWriter:
    """Applies children as one field manager, and tells parents what was taken from others."""

    api: Api
    recorder: Recorder
    field_manager: str

    async def create(self, action: ApplyChild) -> JsonObject:
        """The child that was not there. Raises AlreadyExists where its name is taken."""
        try:
            return await self._apply(action, _with_metadata(action.obj, resourceVersion=_OF_NO_OBJECT), force=True)
        except Conflict as error:
            raise AlreadyExists(ApiStatus(code=409, reason="AlreadyExists", message=str(error))) from error

    async def update(self, action: ApplyChild | RecreateChild, parent: JsonObject) -> JsonObject:
        """The child as it is with all that is desired. Raises Conflict where it is another one by now, or gone."""
        observed: JsonObject = action.observed or {}
        if is_annotated(observed):
            await self._migrate(action, observed)
        wanted = _with_metadata(action.obj, uid=unstructured.uid(observed))
        try:
            return await self._apply(action, wanted, force=False)
        except Conflict as error:
            if not str(error).startswith(_MANAGERS_CONFLICT):
                raise
            lost = str(error).removeprefix(_MANAGERS_CONFLICT).partition(" (PATCH ")[0]
        written = await self._apply(action, wanted, force=True)
        self.recorder.record(
            parent, "Warning", "ApplyConflict", f"{unstructured.describe(written)}: took fields over from other managers ({lost})"
        )
        return written

    async def tried(self, action: RecreateChild) -> JsonObject:
        """The child as an apply would make it. Raises Invalid where it can't be made so."""
        return await self._apply(action, _with_metadata(action.obj, uid=unstructured.uid(action.observed)), force=True, params=DRY_RUN)

    async def _migrate(self, action: ApplyChild | RecreateChild, observed: JsonObject) -> None:
        space, name = unstructured.namespace(observed), unstructured.name(observed)
        try:
            live = await self.api.get(action.info, space, name)
            if unstructured.uid(live) != unstructured.uid(observed):
                raise Conflict("it is another object by now")
            patch = dumps(migration_of(live, manager=self.field_manager))
            await self.api.patch(action.info, space, name, patch, JSON_PATCH)
        except NotFound as error:
            raise Conflict("it was deleted meanwhile") from error

    async def _apply(
        self, action: ApplyChild | RecreateChild, obj: JsonObject, *, force: bool, params: dict[str, str] | None = None
    ) -> JsonObject:
        how = {"fieldManager": self.field_manager, "force": "true" if force else "false", **(params or {})}
        space, name = unstructured.namespace(obj), unstructured.name(obj)
        try:
            return await self.api.patch(action.info, space, name, dumps(obj), APPLY_PATCH, how)
        except Invalid as error:
            if _OTHER_UID in str(error):
                raise Conflict("it is another object by now") from error
            raise


def _with_metadata(obj: JsonObject, **fields: str) -> JsonObject:
    return {**obj, "metadata": {**unstructured.metadata(obj), **fields}}
