"""Carries out claims and plans, action by action, and reports the effect of each.

Independent writes are sent concurrently, up to a limit. One that fails stops none of the others.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

from metaloop.common.errors import Conflict, MetaloopError
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import MAY_HAVE_WORKED, AlreadyExists, NotFound
from metaloop.common.objects import unstructured
from metaloop.common.report import UNKNOWN_VERSION, Write
from metaloop.reconciler.core.children.changes import ApplyStrategy
from metaloop.reconciler.core.children.claim import name_conflict
from metaloop.reconciler.core.effects import Done, Effects, describe
from metaloop.reconciler.core.model import (
    Action,
    Adopt,
    ApplyChild,
    ChildWrite,
    ClaimAction,
    CreateChild,
    DeleteChild,
    Observed,
    Plan,
    RecreateChild,
    Release,
    UpdateChild,
)
from metaloop.reconciler.errors import Failure, NameTaken
from metaloop.reconciler.noop_writes import NoopWrites, WithoutNoops, child_digest
from metaloop.reconciler.ports import Api
from metaloop.reconciler.recreate import Recreation
from metaloop.reconciler.removed_owners import RemovedOwners
from metaloop.reconciler.server_side_writer import ServerSideWriter
from metaloop.reconciler.writes import deleted_as_observed, replaced


def _uncertain(action: Action) -> Write:
    """The write that the watcher should wait for, since no answer came."""
    namespace, name = unstructured.namespace(action.obj), unstructured.name(action.obj)
    return Write(resource=action.info.id, namespace=namespace, name=name, uid="", resource_version=UNKNOWN_VERSION)


def _identity(written: JsonObject) -> JsonObject:
    """Which object was written, and its version: most kinds need no more of ten thousand children."""
    metadata = unstructured.metadata(written)
    return {"metadata": {key: metadata[key] for key in ("namespace", "name", "uid", "resourceVersion") if key in metadata}}


class ChildrenWriter:
    """Writes the children of any parent. `width` is the number of concurrent writes for one parent."""

    def __init__(self, *, width: int, server_side: ServerSideWriter, on_drift: Callable[[], None]) -> None:
        self._width = width
        self._server_side = server_side
        self._recreation = Recreation(server_side=server_side)
        self._noops = NoopWrites()
        self._owners = RemovedOwners()
        self._on_drift = on_drift
        """Called before drifted children are written."""

    def without_noops(self, strategy: ApplyStrategy) -> ApplyStrategy:
        """`strategy`, for which known no-op writes are no difference."""
        return WithoutNoops(strategy=strategy, noops=self._noops)

    async def claim(self, actions: Sequence[ClaimAction], *, observed: Observed, api: Api) -> Effects:
        """Adopts and releases. Before it adopts, it reads the parent live. Raises Conflict if that was deleted."""
        if any(isinstance(action, Adopt) for action in actions):
            await self._require_live(observed, api)
        return await self._all(actions, observed=observed, api=api)

    async def carry_out(self, plan: Plan, *, observed: Observed, api: Api) -> Effects:
        """Carries out a plan: first the deletions, then the other writes."""
        deleted = await self._all(plan.deletions, observed=observed, api=api)
        writes = [write for write in plan.writes if not self._is_noop(write)]
        if any(not isinstance(write, CreateChild) for write in writes):
            self._on_drift()
        written = await self._all(writes, observed=observed, api=api)
        return Effects(done=deleted.done + written.done, failures=deleted.failures + written.failures)

    def _is_noop(self, write: ChildWrite) -> bool:
        return not isinstance(write, CreateChild) and self._noops.has(write.observed, partial(child_digest, write))

    async def _all(self, actions: Sequence[Action], *, observed: Observed, api: Api) -> Effects:
        if len(actions) <= 1:
            results = [await self._one(action, observed=observed, api=api) for action in actions]
        else:
            results = await self._concurrently(actions, observed=observed, api=api)
        return Effects(
            done=tuple([result for result in results if isinstance(result, Done)]),
            failures=tuple([result for result in results if isinstance(result, Failure)]),
        )

    async def _concurrently(self, actions: Sequence[Action], *, observed: Observed, api: Api) -> list[Done | Failure]:
        waiting, results = iter(enumerate(actions)), dict[int, Done | Failure]()

        async def write() -> None:
            for index, action in waiting:
                results[index] = await self._one(action, observed=observed, api=api)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._width, len(actions))):
                group.create_task(write())
        return [results[index] for index in range(len(actions))]

    async def _one(self, action: Action, *, observed: Observed, api: Api) -> Done | Failure:
        try:
            return await self._done(action, observed, api)
        except MetaloopError as error:
            uncertain = _uncertain(action) if isinstance(error, MAY_HAVE_WORKED) else None
            return Failure(what=describe(action), error=error, uncertain=uncertain)

    async def _done(self, action: Action, observed: Observed, api: Api) -> Done:
        if isinstance(action, (UpdateChild, ApplyChild, RecreateChild)):
            self._owners.check(action)
        if isinstance(action, RecreateChild) and await self._recreation.is_needed(action, api=api):
            deletion = DeleteChild(info=action.info, obj=action.observed, reason=action.reason, successor=action.desired)
            version = unstructured.resource_version(action.observed)
            return Done(action=deletion, written=await self._recreation.delete(deletion, api=api, resource_version=version))
        written = await self._write(action, observed, api)
        if written is None or isinstance(action, (Adopt, Release, DeleteChild)):
            return Done(action=action, written=written)
        self._owners.learn(action, written)
        is_noop = not isinstance(action, CreateChild) and self._noops.learn(action.observed, partial(child_digest, action), written=written)
        kept = written if observed.controller.reads_written else _identity(written)
        return Done(action=action, written=kept, is_noop=is_noop)

    async def _write(self, action: Action, observed: Observed, api: Api) -> JsonObject | None:
        match action:
            case CreateChild() | ApplyChild(observed=None):
                return await self._create(action, observed, api)
            case ApplyChild() | RecreateChild(is_applied=True):
                return await self._server_side.update(action, observed.parent, api=api)
            case UpdateChild() | RecreateChild() | Adopt():
                return await replaced(api, action.info, action.obj)
            case Release():
                return await self._release(action, api)
            case DeleteChild(successor=None):
                return await deleted_as_observed(api, action.info, action.obj)
            case DeleteChild():
                return await self._recreation.delete(action, api=api)
            case _:
                assert_never(action)

    async def _create(self, action: CreateChild | ApplyChild, observed: Observed, api: Api) -> JsonObject:
        try:
            if isinstance(action, ApplyChild):
                return await self._server_side.create(action, api=api)
            return await api.create(action.info, action.obj)
        except AlreadyExists as error:
            raise await self._name_conflict(action, observed, api) from error

    async def _name_conflict(self, action: CreateChild | ApplyChild, observed: Observed, api: Api) -> Conflict | NameTaken:
        """Why the name of a new child is taken. See `name_conflict`."""
        space, name = unstructured.namespace(action.obj), unstructured.name(action.obj)
        try:
            live = await api.get(action.info, space, name)
        except NotFound:
            return Conflict("the name was taken, and is free again")
        return name_conflict(live, desired=action.obj, observed=observed)

    async def _release(self, action: Release, api: Api) -> JsonObject | None:
        try:
            return await api.replace(action.info, action.obj)
        except NotFound:
            return None

    async def _require_live(self, observed: Observed, api: Api) -> None:
        try:
            live = await api.get(observed.info, observed.namespace, observed.name)
        except NotFound as error:
            raise Conflict("the parent was deleted meanwhile, and adopts nothing") from error
        if unstructured.uid(live) != observed.uid or unstructured.is_deleting(live):
            raise Conflict("the parent was deleted or replaced meanwhile, and adopts nothing")
