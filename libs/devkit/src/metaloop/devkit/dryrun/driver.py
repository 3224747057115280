"""The driver of dry runs: it calls the hooks and records what the sync would write. It has no means to write."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from typing import Final, Literal, Protocol, assert_never

from metaloop.common.api.hook import LIFECYCLE_HOOKS
from metaloop.common.api.kinds import KINDS
from metaloop.common.errors import MetaloopError
from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import Granted
from metaloop.common.report import SyncReport
from metaloop.reconciler.core.apply.last_applied import applied_to
from metaloop.reconciler.core.apply.schema import guessed_schema
from metaloop.reconciler.core.children.deletion_guard import DEFAULT_LIMITS
from metaloop.reconciler.core.component.preview import Preview, PreviewedObject
from metaloop.reconciler.core.effects import VERBS, Done, Effects
from metaloop.reconciler.core.kinds.registry import PREVIEWS, SYNCS
from metaloop.reconciler.core.model import Action, ApplyChild, ClaimAction, DeleteChild, RecreateChild, RevisionAction
from metaloop.reconciler.core.steps import (
    CallHook,
    ChooseApplyStrategy,
    ClaimChildren,
    ClusterStep,
    CountPass,
    DescribeCluster,
    EditParent,
    FindForeign,
    Forget,
    Learn,
    LocalStep,
    ReadObjects,
    Recall,
    RecordEvent,
    ReportRivals,
    ReportUnknownKeys,
    Resync,
    Step,
    SubscribeRelated,
    WriteChildren,
    WriteRevisions,
)
from metaloop.reconciler.deletion_guards import DeletionGuards
from metaloop.reconciler.drive import drive
from metaloop.reconciler.observe import Observer, key_of
from metaloop.reconciler.ports import Api, Hooks, Subscriptions
from metaloop.reconciler.schemas import Schemas
from metaloop.reconciler.strategies import Strategies
from metaloop.reconciler.sync import SyncRun, finish, sync_of


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWrite:
    """One write that a sync would do, and its reason."""

    verb: str
    info: ResourceInfo
    name: str
    """The object in messages: `ConfigMap default/a`."""
    reason: str
    before: JsonObject | None
    after: JsonObject | None
    subresource: str = ""
    wave: str = ""
    """The wave to which the write belongs, for kinds that have waves."""

    @property
    def is_write(self) -> bool:
        """Whether anything would be written. Otherwise it only says what becomes of an object."""
        return self.verb not in IDLE


IDLE: Final = frozenset({"keep", "wait", "refuse", "orphan", "block"})
"""Verbs of objects that would be left as they are."""


@dataclass(slots=True, kw_only=True)
class DryRun:
    """What a sync would write, in order, which events it would record, and its report."""

    writes: list[PlannedWrite] = field(default_factory=list[PlannedWrite])
    events: list[str] = field(default_factory=list[str])
    obstacles: list[str] = field(default_factory=list[str])
    """Why nothing of it would happen now."""
    report: SyncReport | None = None


class ClusterAnswers(Protocol):
    """Answers what a sync asks about the cluster."""

    async def answer(self, step: ClusterStep, *, api: Api) -> object:
        """The result of one step."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """What a dry run reads with. None of it can write."""

    api: Api
    subscriptions: Subscriptions
    hooks: Hooks
    strategies: Strategies
    cluster: ClusterAnswers


async def dry_run(granted: Granted, reads: Reads) -> DryRun:
    """What a sync of the granted parent would do now. Its hooks are really called.

    For kinds whose parents take several syncs, it is what all of them would do.
    """
    result, run, failure = DryRun(), SyncRun(granted=granted, key=key_of(granted.observation)), None
    driver = RecordingDriver(result=result, run=run, reads=reads, guards=DeletionGuards(limits=DEFAULT_LIMITS))
    try:
        observed, now = Observer(KINDS).observed(granted.observation), datetime.now(UTC)
        preview = PREVIEWS.get(run.key.controller.kind)
        if preview is None:
            await drive(sync_of(run.key, SYNCS)(observed, now), driver.carry_out)
        else:
            _show(result, await drive(preview(observed, now), driver.carry_out))
    except MetaloopError as error:
        failure = error
    result.report = finish(run, failure, seconds=0.0, recorder=_EventRecorder(result))
    return result


@asynccontextmanager
async def running_schemas(kube: KubeClient) -> AsyncIterator[Schemas]:
    """The schemas of the cluster's kinds, fetched while the block lasts."""
    schemas = Schemas(kube)
    fetching = asyncio.create_task(schemas.run())
    try:
        yield schemas
    finally:
        fetching.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingDriver:
    """Carries out those steps of one sync that write nothing, and records the others."""

    result: DryRun
    run: SyncRun
    reads: Reads
    guards: DeletionGuards

    async def carry_out(self, step: Step) -> object:
        """The result of one step, as if it had been carried out. Raises the errors that its class names."""
        match step:
            case CallHook(hook=hook, bodies=bodies) if hook.name in LIFECYCLE_HOOKS:
                return [b"{}" for _ in bodies]  # these may do more than answer
            case CallHook(observed, hook, bodies):
                return await self.reads.hooks.call(observed, hook, bodies, slot=_OnlySlot(), lease=_EndlessLease())
            case ChooseApplyStrategy(observed):
                return await self.reads.strategies.of(observed)
            case SubscribeRelated(fingerprint, queries):
                request = self.run.related_request(fingerprint, queries)
                return await self.reads.subscriptions.related(self.run.granted.shard, request)
            case DescribeCluster() | ReadObjects() | FindForeign():
                return await self.reads.cluster.answer(step, api=self.reads.api)
            case _:
                return self._recorded(step)

    def _recorded(self, step: EditParent | ClaimChildren | WriteChildren | WriteRevisions | LocalStep) -> object:
        match step:
            case EditParent():
                return self._edited(step)
            case ClaimChildren(actions=actions):
                return self._claimed(actions)
            case WriteChildren():
                return self._children_written(step)
            case WriteRevisions():
                self._revisions_written(step)
            case _:
                return self._recorded_locally(step)
        return None

    def _recorded_locally(self, step: LocalStep) -> bool | None:
        match step:
            case RecordEvent(regarding, event_type, reason, message):
                _EventRecorder(self.result).record(regarding, event_type, reason, message)
            case Resync(seconds):
                self.run.journal.resync_within(seconds)
            case ReportUnknownKeys(keys):
                self.run.journal.unknown_keys = keys
            case ReportRivals(parts):
                self.run.journal.rivals = parts
            case CountPass():
                pass
            case Recall() | Learn() | Forget():
                return False  # a single sync knows no facts
            case _:
                assert_never(step)
        return None

    def _edited(self, step: EditParent) -> JsonObject | None:
        """The parent as it would be."""
        observed, subresource = step.observed, step.edit.subresource
        edited = step.edit.mutate(observed.parent)
        if edited is None:
            return observed.parent
        write = PlannedWrite(
            verb="update",
            info=observed.info,
            name=unstructured.describe(observed.parent),
            reason="the status differs" if subresource else "the metadata differ",
            before=observed.parent,
            after=edited,
            subresource=subresource,
        )
        self.result.writes.append(write)
        return edited

    def _claimed(self, actions: Sequence[ClaimAction]) -> Effects:
        """The effects, as if all claims had succeeded."""
        self._record(actions)
        return Effects(done=tuple([Done(action=action, written=action.obj) for action in actions]))

    def _children_written(self, step: WriteChildren) -> Effects:
        guarded = self.guards.check(step.plan, step.children, step.observed)
        self._record([*guarded.plan])
        return Effects(failures=guarded.failures)

    def _revisions_written(self, step: WriteRevisions) -> None:
        stored = {unstructured.uid(revision): revision for revision in step.observed.revisions}
        for action in step.actions:
            before, after = stored.get(unstructured.uid(action.obj)), None if isinstance(action, DeleteChild) else action.obj
            self.result.writes.append(_write(VERBS[type(action)], action, before=before, after=after))

    def _record(self, actions: Sequence[Action]) -> None:
        observed = {unstructured.uid(obj): obj for group in self.run.granted.observation.children for obj in group.objects}
        self.result.writes += [_planned(action, observed) for action in actions]


def _show(result: DryRun, preview: Preview) -> None:
    """Add what a preview says to the result."""
    result.obstacles += preview.obstacles
    result.writes += [_previewed(each, wave.title) for wave in preview.waves for each in wave.objects]


def _previewed(each: PreviewedObject, wave: str) -> PlannedWrite:
    """A previewed object as a planned write."""
    key, before, after = each.key, each.live, each.action.obj if each.action is not None else None
    if isinstance(each.action, ApplyChild) and before is not None:
        before = _desired_part(before, each.action.obj)
    if each.action is None and each.verb in IDLE:
        before = None
    info = ResourceInfo(api_version=each.api_version, resource="", kind=key.kind, namespaced=bool(key.namespace))
    after = each.successor or after
    return PlannedWrite(verb=each.verb, info=info, name=str(key), reason=each.reason, before=before, after=after, wave=wave)


def _planned(action: Action, by_uid: Mapping[str, JsonObject]) -> PlannedWrite:
    if isinstance(action, DeleteChild):
        return _deletion(action)
    observed = by_uid.get(unstructured.uid(action.obj))
    if isinstance(action, (ApplyChild, RecreateChild)):
        observed = action.observed
    if observed is None:
        return _write("create", action, before=None, after=action.obj)
    is_partial = isinstance(action, ApplyChild) or (isinstance(action, RecreateChild) and action.is_applied)
    return _write(VERBS[type(action)], action, before=_desired_part(observed, action.obj) if is_partial else observed, after=action.obj)


def _deletion(action: DeleteChild) -> PlannedWrite:
    """A deletion; or a recreation, which shows what the successor will have instead."""
    if action.successor is None:
        return _write("delete", action, before=action.obj, after=None)
    return _write(
        "recreate", action, before=action.obj, after=applied_to(action.obj, action.successor, schema=guessed_schema(action.info)).obj
    )


def _write(verb: str, action: Action | RevisionAction, *, before: JsonObject | None, after: JsonObject | None) -> PlannedWrite:
    name = unstructured.describe(action.obj)
    return PlannedWrite(verb=verb, info=action.info, name=name, reason=action.reason, before=before, after=after)


@dataclass(frozen=True, slots=True)
class _EventRecorder:
    """Records the events in the result."""

    result: DryRun

    def record(self, regarding: JsonObject, event_type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Record an event."""
        self.result.events.append(f"{event_type} {reason} on {unstructured.describe(regarding)}: {message}")


class _EndlessLease:
    """The lease of a dry run, which writes nothing and competes with nobody."""

    lent_seconds = inf

    def check(self) -> None:
        """Permit every request."""

    def on_extension(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Do nothing: it needs no extension."""
        del listener
        return nullcontext()


class _OnlySlot:
    """The slot of the only sync."""

    def waiting(self) -> AbstractAsyncContextManager[None]:
        """Lends nothing: no other sync waits for the slot."""
        return nullcontext()


def _desired_part(observed: JsonObject, desired: JsonObject) -> JsonObject:
    """The observed values of the desired fields. A server-side apply changes no others."""
    part: JsonObject = {}
    for key, value in desired.items():
        present = observed.get(key)
        if isinstance(value, dict) and isinstance(present, dict):
            part[key] = _desired_part(present, value)
        elif key in observed:
            part[key] = present
    return part
