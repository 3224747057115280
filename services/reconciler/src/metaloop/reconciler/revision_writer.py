"""Writes the ControllerRevisions of a parent before its children, so that any worker can continue the rollout."""

from collections.abc import AsyncIterator, Sequence
from typing import assert_never

from metaloop.common.errors import Conflict, LeaseLost, MetaloopError
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import AlreadyExists, NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.report import Write
from metaloop.reconciler.core.children.claim import name_conflict
from metaloop.reconciler.core.effects import describe, write_of
from metaloop.reconciler.core.model import CreateChild, DeleteChild, Observed, RevisionAction, UpdateChild
from metaloop.reconciler.errors import Failure, WritesFailed
from metaloop.reconciler.ports import Api
from metaloop.reconciler.writes import deleted, replaced


async def write_revisions(actions: Sequence[RevisionAction], *, observed: Observed, api: Api) -> AsyncIterator[Write]:
    """Carries `actions` out in their order, and yields each write. Raises WritesFailed at the first failure."""
    for action in actions:
        try:
            written = await _written(action, observed, api)
        except LeaseLost:
            raise
        except MetaloopError as error:
            raise WritesFailed([Failure(what=describe(action), error=error)]) from error
        if written is not None:
            yield write_of(action.info, written, is_deletion=isinstance(action, DeleteChild))


async def _written(action: RevisionAction, observed: Observed, api: Api) -> JsonObject | None:
    match action:
        case CreateChild():
            return await _create(action, observed, api)
        case UpdateChild():
            return await replaced(api, action.info, action.obj)
        case DeleteChild():
            return await deleted(api, action.info, action.obj)
        case _:
            assert_never(action)


async def _create(action: CreateChild, observed: Observed, api: Api) -> JsonObject:
    """Creates a revision, or adopts an orphan of its name. No other parent's revision can have that name."""
    try:
        return await api.create(action.info, action.obj)
    except AlreadyExists as error:
        try:
            holder = await api.get(action.info, unstructured.namespace(action.obj), unstructured.name(action.obj))
        except NotFound:
            raise Conflict("the name was taken, and is free again") from error
        if controller_ref(holder) is not None or unstructured.is_deleting(holder):
            raise name_conflict(holder, desired=action.obj, observed=observed) from error
    version = {key: unstructured.metadata(holder)[key] for key in ("uid", "resourceVersion")}
    return await api.replace(action.info, {**action.obj, "metadata": {**unstructured.metadata(action.obj), **version}})
