"""A second driver of syncs: it asks the hooks, and writes down what would be written. There is nothing in its hands that could write."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, assert_never

from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.errors import MetaloopError
from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import Granted
from metaloop.common.report import SyncReport
from metaloop.devkit.dryrun.world import World
from metaloop.reconciler.core.apply.last_applied import applied_to
from metaloop.reconciler.core.apply.schema import guessed_schema
from metaloop.reconciler.core.effects import VERBS, Done, Effects
from metaloop.reconciler.core.kinds.registry import SYNCS
from metaloop.reconciler.core.model import Action, ApplyChild, ClaimAction, DeleteChild, RecreateChild, RevisionAction
from metaloop.reconciler.core.steps import (
    CallHook,
    ChooseApplyStrategy,
    ClaimChildren,
    EditParent,
    Forget,
    Learn,
    LocalStep,
    Recall,
    RecordEvent,
    ReportUnknownKeys,
    Resync,
    Step,
    SubscribeRelated,
    WriteChildren,
    WriteRevisions,
)
from metaloop.reconciler.deletion_guards import DeletionGuards
from metaloop.reconciler.drive import drive
from metaloop.reconciler.errors import Failure
from metaloop.reconciler.observe import Observer, key_of
from metaloop.reconciler.ports import Hooks
from metaloop.reconciler.schemas import Schemas
from metaloop.reconciler.strategies import Strategies
from metaloop.reconciler.sync import SyncRun, reported, sync_of


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
    rehearsal, turn, failure = Rehearsal(), SyncRun(granted=granted, key=key_of(granted.observation)), None
    async with _schemas_of(kube) as schemas:
        strategies = Strategies(schemas=schemas, default=apply_strategy)
        driver = RecordingDriver(rehearsal=rehearsal, turn=turn, world=world, hooks=hooks, strategies=strategies)
        try:
            observed = Observer().observed(granted.observation)
            await drive(sync_of(turn.key, SYNCS)(observed, datetime.now(UTC)), driver.carry_out)
        except MetaloopError as error:
            failure = error
    rehearsal.report = reported(turn, failure, seconds=0.0, recorder=_NotedEvents(rehearsal))
    return rehearsal


@asynccontextmanager
async def _schemas_of(kube: KubeClient) -> AsyncIterator[Schemas]:
    schemas = Schemas(kube)
    fetching = asyncio.create_task(schemas.run())
    try:
        yield schemas
    finally:
        fetching.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingDriver:
    """Carries out the steps of one sync that change nothing, and notes the others."""

    rehearsal: Rehearsal
    turn: SyncRun
    world: World
    hooks: Hooks
    strategies: Strategies
    guards: DeletionGuards = field(default_factory=DeletionGuards)

    async def carry_out(self, step: Step) -> object:
        """The result of one step, as if it had been carried out. Raises what its class says."""
        match step:
            case CallHook(observed, hook, bodies):
                return await self.hooks.call(observed, hook, bodies, slot=_OwnSlot())
            case ChooseApplyStrategy(observed):
                return await self.strategies.of(observed)
            case SubscribeRelated(fingerprint, queries):
                request = RelatedRequest(key=self.turn.key, lease=self.turn.granted.lease, fingerprint=fingerprint, queries=tuple(queries))
                return await self.world.related(self.turn.granted.shard, request)
            case _:
                return self._noted(step)

    def _noted(self, step: EditParent | ClaimChildren | WriteChildren | WriteRevisions | LocalStep) -> object:
        match step:
            case EditParent():
                return self._edited(step)
            case ClaimChildren(actions=actions):
                return self._claimed(actions)
            case WriteChildren():
                return self._children_written(step)
            case WriteRevisions():
                self._revisions_written(step)
            case RecordEvent(regarding, event_type, reason, message):
                _NotedEvents(self.rehearsal).record(regarding, event_type, reason, message)
            case Resync(seconds):
                self.turn.journal.resync_within(seconds)
            case ReportUnknownKeys(keys):
                self.turn.journal.unknown_keys = keys
            case Recall() | Learn() | Forget():
                return False  # who syncs once learns nothing
            case _:
                assert_never(step)
        return None

    def _edited(self, step: EditParent) -> JsonObject | None:
        """The parent as it would be."""
        observed, subresource = step.observed, step.edit.subresource
        wanted = step.edit.make(observed.parent)
        if wanted is None:
            return observed.parent
        note = PlannedWrite(
            verb="update",
            info=observed.info,
            name=unstructured.describe(observed.parent),
            reason="the status differs" if subresource else "the metadata differ",
            before=observed.parent,
            after=wanted,
            subresource=subresource,
        )
        self.rehearsal.writes.append(note)
        return wanted

    def _claimed(self, actions: Sequence[ClaimAction]) -> Effects:
        """Says that all was done."""
        self._note(actions)
        return Effects(done=tuple([Done(action=action, written=action.obj) for action in actions]))

    def _children_written(self, step: WriteChildren) -> Effects:
        guarded = self.guards.passed(step.plan, step.children, step.observed)
        self._note([*guarded.plan])
        held = guarded.held
        return Effects(failures=(Failure(what="delete children", error=held),) if held is not None else ())

    def _revisions_written(self, step: WriteRevisions) -> None:
        stored = {unstructured.uid(revision): revision for revision in step.observed.revisions}
        for action in step.actions:
            before, after = stored.get(unstructured.uid(action.obj)), None if isinstance(action, DeleteChild) else action.obj
            self.rehearsal.writes.append(_write(VERBS[type(action)], action, before=before, after=after))

    def _note(self, actions: Sequence[Action]) -> None:
        seen = {unstructured.uid(obj): obj for group in self.turn.granted.observation.children for obj in group.objects}
        self.rehearsal.writes += [_planned(action, seen) for action in actions]


def _planned(action: Action, seen: Mapping[str, JsonObject]) -> PlannedWrite:
    if isinstance(action, DeleteChild):
        return _deletion(action)
    observed = seen.get(unstructured.uid(action.obj))
    if isinstance(action, (ApplyChild, RecreateChild)):
        observed = action.observed
    if observed is None:
        return _write("create", action, before=None, after=action.obj)
    is_partial = isinstance(action, ApplyChild) or (isinstance(action, RecreateChild) and action.is_applied)
    return _write(VERBS[type(action)], action, before=_as_far_as(action.obj, observed) if is_partial else observed, after=action.obj)


def _deletion(action: DeleteChild) -> PlannedWrite:
    """What goes for good; or, where it makes room for a successor, what that will have otherwise."""
    if action.successor is None:
        return _write("delete", action, before=action.obj, after=None)
    return _write(
        "recreate", action, before=action.obj, after=applied_to(action.obj, action.successor, schema=guessed_schema(action.info)).obj
    )


def _write(verb: str, action: Action | RevisionAction, *, before: JsonObject | None, after: JsonObject | None) -> PlannedWrite:
    name = unstructured.describe(action.obj)
    return PlannedWrite(verb=verb, info=action.info, name=name, reason=action.reason, before=before, after=after)


@dataclass(frozen=True, slots=True)
class _NotedEvents:
    """Notes which events would be recorded."""

    rehearsal: Rehearsal

    def record(self, regarding: JsonObject, event_type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Keeps it."""
        self.rehearsal.events.append(f"{event_type} {reason} on {unstructured.describe(regarding)}: {message}")


class _OwnSlot:
    """There is nobody else who would want it."""

    def waiting(self) -> AbstractAsyncContextManager[None]:
        """Nothing to lend."""
        return nullcontext()


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
