"""The driver of syncs: observe a parent, carry out the steps of its kind's sync, and report how it ended.

What a sync decides stands in `core/pipeline.py`, the page to read first. What no kind may forget stands here: the lease goes with each write, the
journal notes it, the guards see each plan, and each end becomes an outcome, an event and a report.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic
from typing import assert_never

from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.errors import InvalidSpec, LeaseLost, MetaloopError
from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject
from metaloop.common.observation import Granted, Related
from metaloop.common.report import SyncReport
from metaloop.common.telemetry.traces import span
from metaloop.reconciler.announce import FinishedSync, announce
from metaloop.reconciler.children_writer import ChildrenWriter
from metaloop.reconciler.core.effects import Effects
from metaloop.reconciler.core.kinds.registry import SYNCS, Sync, Syncs
from metaloop.reconciler.core.outcome import outcome_of
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
from metaloop.reconciler.facts import Facts
from metaloop.reconciler.journal import Journal
from metaloop.reconciler.observe import Observer, key_of
from metaloop.reconciler.parent_writer import ParentWriter
from metaloop.reconciler.ports import Follower, Hooks, LeaseGuard, Recorder, Slot
from metaloop.reconciler.revision_writer import RevisionWriter
from metaloop.reconciler.strategies import Strategies


@dataclass(frozen=True, slots=True, kw_only=True)
class Writers:
    """All that the steps of a sync are carried out with."""

    children: ChildrenWriter
    parents: ParentWriter
    revisions: RevisionWriter
    hooks: Hooks
    follower: Follower
    recorder: Recorder
    strategies: Strategies
    guards: DeletionGuards
    facts: Facts = field(default_factory=Facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncer:
    """Brings one parent at a time to the state that its hook asks for; serves any number of them at once."""

    writers: Writers
    observer: Observer = field(default_factory=Observer)
    syncs: Syncs = field(default_factory=lambda: SYNCS)
    clock: Callable[[], float] = monotonic

    async def sync(self, granted: Granted, slot: Slot, lease: LeaseGuard) -> SyncReport:
        """Syncs the parent that was granted, and returns how it ended. Raises only LeaseLost: then it is another worker's to report."""
        began, failure = self.clock(), None
        turn = SyncRun(granted=granted, key=key_of(granted.observation))
        try:
            with span("sync"):
                observed = self.observer.observed(granted.observation)
                steps = sync_of(turn.key, self.syncs)(observed, datetime.now(UTC))
                await drive(steps, Driver(writers=self.writers, turn=turn, slot=slot, lease=lease).carry_out)
        except LeaseLost:
            raise
        except MetaloopError as error:
            failure = error
        return reported(turn, failure, seconds=self.clock() - began, recorder=self.writers.recorder)


def sync_of(key: JobKey, syncs: Syncs) -> Sync:
    """How the parents of a controller are synced. Raises InvalidSpec for a kind that nobody syncs."""
    sync = syncs.get(key.controller.kind)
    if sync is None:
        raise InvalidSpec("kind", f"{key.controller.kind} is no kind of controller")
    return sync


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRun:
    """The parent that was granted to one sync, and what the sync did so far."""

    granted: Granted
    key: JobKey
    journal: Journal = field(default_factory=Journal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """Carries out the steps of one sync."""

    writers: Writers
    turn: SyncRun
    slot: Slot
    """Our share of CPU and API calls."""
    lease: LeaseGuard
    """Our right to write."""

    async def carry_out(self, step: Step) -> object:  # noqa: PLR0911 - one for each kind of step that waits
        """The result of one step, as its class says. Raises what its class says, and LeaseLost."""
        match step:
            case EditParent():
                return await self._edited(step)
            case CallHook(observed, hook, bodies):
                return await self.writers.hooks.call(observed, hook, bodies, slot=self.slot)
            case ChooseApplyStrategy(observed):
                return self.writers.children.without_noops(await self.writers.strategies.of(observed))
            case WriteChildren():
                return await self._children_written(step)
            case ClaimChildren(observed, actions):
                return self._noted(await self.writers.children.claim(actions, observed=observed, lease=self.lease))
            case WriteRevisions():
                return await self._revisions_written(step)
            case SubscribeRelated():
                return await self._subscribed(step)
            case _:
                return self._noted_at_once(step)

    def _noted_at_once(self, step: LocalStep) -> bool | None:
        """The result of a step that waits for nobody."""
        match step:
            case Forget(fact):
                self.writers.facts.forget(fact)
            case Resync(seconds):
                self.turn.journal.resync_within(seconds)
            case ReportUnknownKeys(keys):
                self.turn.journal.unknown_keys = keys
            case RecordEvent(regarding, event_type, reason, message):
                self.writers.recorder.record(regarding, event_type, reason, message)
            case Recall(fact):
                return fact in self.writers.facts
            case Learn(fact):
                self.writers.facts.learn(fact)
            case _:
                assert_never(step)
        return None

    async def _edited(self, step: EditParent) -> JsonObject | None:
        edited = await self.writers.parents.edit(step.observed, step.edit, lease=self.lease)
        if edited.write is not None:
            self.turn.journal.note_write(step.edit.name, edited.write)
        return edited.parent

    async def _children_written(self, step: WriteChildren) -> Effects:
        guarded = self.writers.guards.passed(step.plan, step.children, step.observed)
        effects = self._noted(await self.writers.children.carry_out(guarded.plan, observed=step.observed, lease=self.lease))
        if guarded.held is None:
            return effects
        return replace(effects, failures=(*effects.failures, Failure(what="delete children", error=guarded.held)))

    async def _revisions_written(self, step: WriteRevisions) -> None:
        async for write in self.writers.revisions.carry_out(step.actions, observed=step.observed, lease=self.lease):
            self.turn.journal.note_write("Revision", write)

    async def _subscribed(self, step: SubscribeRelated) -> Related:
        request = RelatedRequest(
            key=self.turn.key, lease=self.turn.granted.lease, fingerprint=step.fingerprint, queries=tuple(step.queries)
        )
        return await self.writers.follower.related(self.turn.granted.shard, request)

    def _noted(self, effects: Effects) -> Effects:
        self.turn.journal.note(effects)
        return effects


def reported(turn: SyncRun, failure: MetaloopError | None, *, seconds: float, recorder: Recorder) -> SyncReport:
    """The report of a sync that ended, after it was announced."""
    outcome, journal = outcome_of(failure), turn.journal
    finished = FinishedSync(
        key=turn.key,
        parent=turn.granted.observation.parent,
        outcome=outcome,
        actions=journal.actions,
        seconds=seconds,
        unknown_keys=journal.unknown_keys,
    )
    announce(finished, recorder)
    return SyncReport(
        key=turn.key,
        lease=turn.granted.lease,
        result=outcome.result,
        after_seconds=outcome.after_seconds,
        resync_after_seconds=journal.resync_after_seconds,
        fault=outcome.fault,
        message=outcome.message,
        writes=journal.writes,
    )
