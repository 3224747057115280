"""Sends server-side apply requests: they create a child that must not exist, or change the one that was observed.

Rules
    1. Nothing is applied to an object unless we know that it is this parent's child. A creation states a
       resourceVersion that no object has, so the API server refuses it if the object exists. A change states the
       observed UID.
    2. Fields of other field managers are taken over, since the hook decides what is desired. The parent gets an event
       that says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from metaloop.common.errors import ApiStatus, Conflict
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import APPLY_PATCH, JSON_PATCH
from metaloop.common.kube.errors import AlreadyExists, Invalid, NotFound
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.apply.last_applied import is_annotated
from metaloop.reconciler.core.apply.migration import is_to_be_migrated, migration_of
from metaloop.reconciler.core.model import ApplyChild, RecreateChild
from metaloop.reconciler.ports import Api, Recorder

_NO_OBJECTS_VERSION: Final = str(2**63 - 1)
"""A resourceVersion that no cluster will ever reach."""
_OTHER_UID: Final = "metadata.uid: Invalid value"
_MANAGERS_CONFLICT: Final = "Apply failed with "
DRY_RUN: Final = {"dryRun": "All"}
"""The parameters of a dry run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSideWriter:
    """Applies children as one field manager, and tells the parent what it took over from others."""

    recorder: Recorder
    field_manager: str

    async def create(self, action: ApplyChild, *, api: Api) -> JsonObject:
        """Creates a child. Raises AlreadyExists if its name is taken."""
        try:
            return await self._apply(action, api, _with_metadata(action.obj, resourceVersion=_NO_OBJECTS_VERSION), force=True)
        except Conflict as error:
            raise AlreadyExists(ApiStatus(code=409, reason="AlreadyExists", message=str(error))) from error

    async def update(self, action: ApplyChild | RecreateChild, parent: JsonObject, *, api: Api) -> JsonObject:
        """Applies the configuration to a child. Raises Conflict if it was deleted or replaced."""
        observed: JsonObject = action.observed or {}
        folded = action.folded_managers if isinstance(action, ApplyChild) else None
        if folded is not None or is_annotated(observed):
            await self._migrate(action, observed, api, others=folded or ())
        sent = _with_metadata(action.obj, uid=unstructured.uid(observed))
        try:
            return await self._apply(action, api, sent, force=False)
        except Conflict as error:
            if not str(error).startswith(_MANAGERS_CONFLICT):
                raise
            lost = str(error).removeprefix(_MANAGERS_CONFLICT).partition(" (PATCH ")[0]
        written = await self._apply(action, api, sent, force=True)
        self.recorder.record(
            parent, "Warning", "ApplyConflict", f"{unstructured.describe(written)}: took fields over from other managers ({lost})"
        )
        return written

    async def dry_run(self, action: RecreateChild, *, api: Api) -> JsonObject:
        """The child as an apply would change it. Raises Invalid if the change is not allowed."""
        return await self._apply(action, api, _with_metadata(action.obj, uid=unstructured.uid(action.observed)), force=True, params=DRY_RUN)

    async def _migrate(self, action: ApplyChild | RecreateChild, observed: JsonObject, api: Api, *, others: Sequence[str]) -> None:
        """Makes ours what we wrote by updates, and what the `others` wrote. What is observed has no managed fields."""
        space, name = unstructured.namespace(observed), unstructured.name(observed)
        try:
            live = await api.get(action.info, space, name)
            if unstructured.uid(live) != unstructured.uid(observed):
                raise Conflict("it was replaced by another object meanwhile")
            if is_annotated(live) or is_to_be_migrated(live, manager=self.field_manager, others=others):
                patch = dumps(migration_of(live, manager=self.field_manager, others=others))
                await api.patch(action.info, space, name, patch, JSON_PATCH)
        except NotFound as error:
            raise Conflict("it was deleted meanwhile") from error

    async def _apply(
        self, action: ApplyChild | RecreateChild, api: Api, obj: JsonObject, *, force: bool, params: dict[str, str] | None = None
    ) -> JsonObject:
        query = {"fieldManager": self.field_manager, "force": "true" if force else "false", **(params or {})}
        space, name = unstructured.namespace(obj), unstructured.name(obj)
        try:
            return await api.patch(action.info, space, name, dumps(obj), APPLY_PATCH, query)
        except Invalid as error:
            if _OTHER_UID in str(error):
                raise Conflict("it was replaced by another object meanwhile") from error
            raise


def _with_metadata(obj: JsonObject, **fields: str) -> JsonObject:
    return {**obj, "metadata": {**unstructured.metadata(obj), **fields}}
