"""Syncs a parent: reads the observation, carries out the steps of its kind's sync, and reports how it ended.

`core/pipeline.py` is the page to read first: it says what a sync decides. This module does what every kind needs: each
request is sent only while the lease lasts, the journal records each write, the guards check each plan, and each end of
a sync becomes an outcome, an event and a report.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.errors import InvalidSpec, LeaseLost, MetaloopError
from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject
from metaloop.common.machine import monotonic, utc_now
from metaloop.common.objects import unstructured
from metaloop.common.observation import Granted, Observation
from metaloop.common.related_query import RelatedQuery
from metaloop.common.report import SyncReport
from metaloop.common.telemetry.traces import span, trace_id_in
from metaloop.reconciler.announce import FinishedSync, announce
from metaloop.reconciler.children_writer import ChildrenWriter
from metaloop.reconciler.cluster_reader import ClusterReader, on_behalf_of
from metaloop.reconciler.component_metrics import count_pass
from metaloop.reconciler.core.effects import Effects
from metaloop.reconciler.core.kinds.registry import Sync, Syncs
from metaloop.reconciler.core.outcome import outcome_of
from metaloop.reconciler.core.steps import (
    CallHook,
    ChooseApplyStrategy,
    ClaimChildren,
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
from metaloop.reconciler.facts import Facts
from metaloop.reconciler.journal import Journal
from metaloop.reconciler.large_parents import LargeParents
from metaloop.reconciler.observe import Observer, key_of
from metaloop.reconciler.parent_writer import ParentWriter
from metaloop.reconciler.ports import Api, ApiServer, Hooks, LeaseGuard, Recorder, Slot, Subscriptions
from metaloop.reconciler.revision_writer import write_revisions
from metaloop.reconciler.strategies import Strategies


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """Everything that the steps of a sync are carried out with."""

    api: ApiServer
    children: ChildrenWriter
    parents: ParentWriter
    hooks: Hooks
    subscriptions: Subscriptions
    recorder: Recorder
    strategies: Strategies
    guards: DeletionGuards
    cluster: ClusterReader
    facts: Facts = field(default_factory=Facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncer:
    """Brings parents to the state that their hooks desire, any number of them at once."""

    dependencies: Dependencies
    observer: Observer
    syncs: Syncs
    large: LargeParents
    """Where syncs of large parents compute."""
    clock: Callable[[], float] = monotonic

    async def sync(self, granted: Granted, slot: Slot, lease: LeaseGuard) -> SyncReport:
        """Syncs the granted parent, and reports how that ended. Raises only LeaseLost: the job is then not ours."""
        began, failure = self.clock(), None
        run = SyncRun(granted=granted, key=key_of(granted.observation))
        try:
            with span("sync") as spanned:
                run.journal.trace_id = trace_id_in(spanned.traceparent)
                observed = self.observer.observed(granted.observation)
                steps = sync_of(run.key, self.syncs)(observed, utc_now())
                driver = self._driver(run, observed.controller.watched, slot, lease, began)
                thread = self.large.sync_thread(run.key, slot, observed_bytes=granted.observed_bytes)
                await drive(steps, driver.carry_out, thread=thread)
        except LeaseLost:
            raise
        except MetaloopError as error:
            failure = error
        return finish(run, failure, seconds=self.clock() - began, recorder=self.dependencies.recorder)

    def _driver(self, run: "SyncRun", watched: str, slot: Slot, lease: LeaseGuard, began: float) -> "Driver":
        return Driver(
            dependencies=self.dependencies,
            run=run,
            watched=watched,
            slot=slot,
            lease=lease,
            api=self.dependencies.api.permitted_by(lease.check),
            elapsed=lambda: self.clock() - began,
        )


def sync_of(key: JobKey, syncs: Syncs) -> Sync:
    """The sync of the controller's kind. Raises InvalidSpec for an unknown kind."""
    sync = syncs.get(key.controller.kind)
    if sync is None:
        raise InvalidSpec("kind", f"{key.controller.kind} is not a kind of controller")
    return sync


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRun:
    """One sync: the granted parent, and what the sync did so far."""

    granted: Granted
    key: JobKey
    journal: Journal = field(default_factory=Journal)

    @property
    def change_to_hook_seconds(self) -> float | None:
        """From the change that caused the sync until its first hook call; None without the one or the other."""
        changed_ago, hook_after = self.granted.changed_seconds_ago, self.journal.hook_after_seconds
        return None if changed_ago is None or hook_after is None else changed_ago + hook_after

    def related_request(self, fingerprint: str, queries: Sequence[RelatedQuery]) -> RelatedRequest:
        """The request that subscribes the parent to related objects."""
        return RelatedRequest(key=self.key, lease=self.granted.lease, fingerprint=fingerprint, queries=tuple(queries))


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Carries out the steps of one sync."""

    dependencies: Dependencies
    run: SyncRun
    watched: str
    """The label selector within which what is written to children is watched; empty for all of them."""
    slot: Slot
    """The sync's share of CPU and API calls."""
    lease: LeaseGuard
    """The sync's right to ask and to write."""
    api: Api
    """The API server, for as long as the lease lasts."""
    elapsed: Callable[[], float]
    """How long ago the sync began, in seconds."""

    async def carry_out(self, step: Step) -> object:  # noqa: PLR0911 - one return for each kind of step
        """The result of one step. Raises the errors that its class names, and LeaseLost."""
        match step:
            case EditParent():
                return await self._edited(step)
            case CallHook():
                return await self._answered(step)
            case ChooseApplyStrategy(observed):
                return self.dependencies.children.without_noops(await self.dependencies.strategies.of(observed))
            case WriteChildren():
                return await self._children_written(step)
            case ClaimChildren(observed, actions):
                return self._recorded(await self.dependencies.children.claim(actions, observed=observed, api=self.api))
            case WriteRevisions():
                return await self._revisions_written(step)
            case DescribeCluster() | ReadObjects() | FindForeign():
                return await self.dependencies.cluster.answer(step, api=self.api)
            case SubscribeRelated(fingerprint, queries):
                self.lease.check()
                request = self.run.related_request(fingerprint, queries)
                return await self.dependencies.subscriptions.related(self.run.granted.shard, request)
            case _:
                return self._carry_out_locally(step)

    def _carry_out_locally(self, step: LocalStep) -> bool | None:
        """The result of one step that waits for nothing."""
        match step:
            case Forget(fact):
                self.dependencies.facts.forget(fact)
            case Resync(seconds):
                self.run.journal.resync_within(seconds)
            case ReportUnknownKeys(keys):
                self.run.journal.unknown_keys = keys
            case ReportRivals(parts):
                self.run.journal.rivals = parts
            case CountPass():
                count_pass(step, controller=str(self.run.key.controller))
            case RecordEvent(regarding, event_type, reason, message):
                self.dependencies.recorder.record(regarding, event_type, reason, message)
            case Recall(fact):
                return fact in self.dependencies.facts
            case Learn(fact):
                self.dependencies.facts.learn(fact)
            case _:
                assert_never(step)
        return None

    async def _answered(self, step: CallHook) -> list[bytes]:
        began, journal = self.elapsed(), self.run.journal
        journal.begin_hook(after_seconds=began)
        try:
            return await self.dependencies.hooks.call(step.observed, step.hook, step.bodies, slot=self.slot, lease=self.lease)
        finally:
            journal.end_hook(step.hook.name, seconds=self.elapsed() - began)

    async def _edited(self, step: EditParent) -> JsonObject | None:
        edited = await self.dependencies.parents.edit(step.observed, step.edit, api=self.api)
        if edited.write is not None:
            self.run.journal.record_write(step.edit.name, edited.write)
        return edited.parent

    async def _children_written(self, step: WriteChildren) -> Effects:
        guarded = self.dependencies.guards.check(step.plan, step.children, step.observed)
        api = on_behalf_of(step.acting_as, self.api)
        effects = self._recorded(await self.dependencies.children.carry_out(guarded.plan, observed=step.observed, api=api))
        return replace(effects, failures=(*effects.failures, *guarded.failures)) if guarded.failures else effects

    async def _revisions_written(self, step: WriteRevisions) -> None:
        async for write in write_revisions(step.actions, observed=step.observed, api=self.api):
            self.run.journal.record_write("Revision", write)

    def _recorded(self, effects: Effects) -> Effects:
        self.run.journal.record(effects, watched=self.watched)
        return effects


def finish(run: SyncRun, failure: MetaloopError | None, *, seconds: float, recorder: Recorder) -> SyncReport:
    """Announces a sync that ended, and returns its report."""
    outcome, journal = outcome_of(failure), run.journal
    finished = FinishedSync(
        key=run.key,
        parent=run.granted.observation.parent,
        part=part_of(run.granted.observation),
        outcome=outcome,
        actions=journal.actions,
        seconds=seconds,
        unknown_keys=journal.unknown_keys,
        change_to_hook_seconds=run.change_to_hook_seconds,
    )
    announce(finished, recorder)
    return SyncReport(
        key=run.key,
        lease=run.granted.lease,
        result=outcome.result,
        after_seconds=outcome.after_seconds,
        resync_after_seconds=journal.resync_after_seconds,
        fault=outcome.fault,
        message=outcome.message,
        writes=journal.writes,
        rivals=journal.rivals,
        actions=journal.actions,
        hook_seconds=journal.hook_seconds,
        trace_id=journal.trace_id,
    )


def part_of(observation: Observation) -> str:
    """The part of a parent as people know it: its input, or its key where it has none."""
    inputs = (obj for group in observation.inputs for obj in group.objects)
    return next(map(unstructured.describe, inputs), observation.part) if observation.part else ""
