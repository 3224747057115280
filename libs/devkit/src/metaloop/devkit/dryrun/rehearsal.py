"""One sync of the real pipeline, whose writers only note what they are asked to write: there is nothing in their hands that could."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import Granted
from metaloop.common.report import SyncReport, Write
from metaloop.devkit.dryrun.world import World
from metaloop.reconciler.children_writer import ChildrenWriter, Done, Effects
from metaloop.reconciler.core.apply.last_applied import applied_to
from metaloop.reconciler.core.apply.schema import guess_of
from metaloop.reconciler.core.children.changes import ApplyStrategy
from metaloop.reconciler.core.model import (
    Action,
    Adopt,
    ApplyChild,
    ClaimAction,
    CreateChild,
    DeleteChild,
    Observed,
    Plan,
    RecreateChild,
    Release,
    UpdateChild,
)
from metaloop.reconciler.core.rollout.revisions import RevisionAction
from metaloop.reconciler.parent_writer import Edit, Edited, ParentWriter
from metaloop.reconciler.ports import Hooks, LeaseGuard
from metaloop.reconciler.revision_writer import RevisionWriter
from metaloop.reconciler.schemas import Schemas
from metaloop.reconciler.strategies import Strategies
from metaloop.reconciler.sync import Syncer


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrite:
    """One write that a sync would do, in its order, and why."""

    verb: str
    info: ResourceInfo
    name: str
    """As people name the object: `ConfigMap default/a`."""
    reason: str
    before: JsonObject | None
    after: JsonObject | None
    subresource: str = ""


@dataclass(slots=True, kw_only=True)
class Rehearsal:
    """What a sync would do and say."""

    writes: list[PlannedWrite] = field(default_factory=list[PlannedWrite])
    events: list[str] = field(default_factory=list[str])
    report: SyncReport | None = None


async def rehearse(granted: Granted, *, kube: KubeClient, world: World, hooks: Hooks, apply_strategy: str) -> Rehearsal:
    """What syncing the parent that was granted would do now. Its hooks are really asked."""
    rehearsal = Rehearsal()
    schemas = Schemas(kube)
    syncer = Syncer(
        applier=_NotedChildren(rehearsal, granted),
        hooks=hooks,
        parents=_NotedParent(rehearsal),
        revisions=_NotedRevisions(rehearsal),
        follower=world,
        recorder=_NotedEvents(rehearsal),
        strategies=Strategies(schemas=schemas, default=apply_strategy),
    )
    fetching = asyncio.create_task(schemas.run())
    try:
        rehearsal.report = await syncer.sync(granted, _OwnSlot(), _OwnLease())
    finally:
        fetching.cancel()
    return rehearsal


class _NotedChildren(ChildrenWriter):
    """Notes what would be written to children."""

    def __init__(self, rehearsal: Rehearsal, granted: Granted) -> None:
        groups = granted.observation.children
        self._rehearsal = rehearsal
        self._seen = {unstructured.uid(obj): obj for group in groups for obj in group.objects}

    def without_noops(self, how: ApplyStrategy) -> ApplyStrategy:
        """`how` itself: who never writes learns nothing."""
        return how

    async def claim(self, actions: Sequence[ClaimAction], *, observed: Observed, lease: LeaseGuard) -> Effects:
        """Says that all was done."""
        del observed, lease
        return self._noted(actions)

    async def carry_out(self, plan: Plan, *, observed: Observed, lease: LeaseGuard) -> Effects:
        """Says that all was done."""
        del observed, lease
        return self._noted([*plan])

    def _noted(self, actions: Sequence[Action]) -> Effects:
        self._rehearsal.writes += [self._planned(action) for action in actions]
        return Effects(done=tuple([Done(action=action, written=action.obj) for action in actions if isinstance(action, (Adopt, Release))]))

    def _planned(self, action: Action) -> PlannedWrite:
        verb = _VERBS[type(action)]
        if isinstance(action, DeleteChild):
            return _deletion(action)
        observed = self._seen.get(unstructured.uid(action.obj))
        if isinstance(action, (ApplyChild, RecreateChild)):
            observed = action.observed
        if observed is None:
            return _write("create", action, before=None, after=action.obj)
        is_partial = isinstance(action, ApplyChild) or (isinstance(action, RecreateChild) and action.is_applied)
        return _write(verb, action, before=_as_far_as(action.obj, observed) if is_partial else observed, after=action.obj)


_VERBS: Mapping[type[Action], str] = {
    CreateChild: "create",
    UpdateChild: "update",
    ApplyChild: "apply",
    RecreateChild: "recreate",
    DeleteChild: "delete",
    Adopt: "adopt",
    Release: "release",
}


def _deletion(action: DeleteChild) -> PlannedWrite:
    """What goes for good; or, where it makes room for a successor, what that will have otherwise."""
    if action.successor is None:
        return _write("delete", action, before=action.obj, after=None)
    return _write("recreate", action, before=action.obj, after=applied_to(action.obj, action.successor, schema=guess_of(action.info)).obj)


def _write(verb: str, action: Action | RevisionAction, *, before: JsonObject | None, after: JsonObject | None) -> PlannedWrite:
    name = unstructured.describe(action.obj)
    return PlannedWrite(verb=verb, info=action.info, name=name, reason=action.reason, before=before, after=after)


class _NotedParent(ParentWriter):
    """Notes what would be written to the parent itself."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal

    async def edit(self, observed: Observed, edit: Edit, *, lease: LeaseGuard, subresource: str = "") -> Edited:
        """The parent as it would be."""
        del lease
        wanted = edit(observed.parent)
        if wanted is None:
            return Edited(parent=observed.parent)
        note = PlannedWrite(
            verb="update",
            info=observed.info,
            name=unstructured.describe(observed.parent),
            reason="the status differs" if subresource else "the metadata differ",
            before=observed.parent,
            after=wanted,
            subresource=subresource,
        )
        self._rehearsal.writes.append(note)
        return Edited(parent=wanted)


class _NotedRevisions(RevisionWriter):
    """Notes what would be written to ControllerRevisions."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal

    async def carry_out(self, actions: Sequence[RevisionAction], *, observed: Observed, lease: LeaseGuard) -> AsyncIterator[Write]:
        """Nothing that was written."""
        del lease
        stored = {unstructured.uid(revision): revision for revision in observed.revisions}
        for action in actions:
            before, after = stored.get(unstructured.uid(action.obj)), None if isinstance(action, DeleteChild) else action.obj
            self._rehearsal.writes.append(_write(_VERBS[type(action)], action, before=before, after=after))
        return
        yield


class _NotedEvents:
    """Notes which events would be recorded."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal

    def record(self, regarding: JsonObject, event_type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Keeps it."""
        self._rehearsal.events.append(f"{event_type} {reason} on {unstructured.describe(regarding)}: {message}")


class _OwnSlot:
    """There is nobody else who would want it."""

    def waiting(self) -> AbstractAsyncContextManager[None]:
        """Nothing to lend."""
        return nullcontext()


class _OwnLease:
    """There is nobody else who could have it."""

    def check(self) -> None:
        """Always fine."""


def _as_far_as(desired: JsonObject, observed: JsonObject) -> JsonObject:
    """What was observed of the fields that are desired: the rest is not this apply's to change."""
    kept: JsonObject = {}
    for key, value in desired.items():
        there = observed.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            kept[key] = _as_far_as(value, there)
        elif key in observed:
            kept[key] = there
    return kept
