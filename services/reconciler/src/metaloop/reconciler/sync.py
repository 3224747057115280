"""The pipeline, and the page to read first: observe, claim, ask the hook, plan, apply, write the status.

One sync of one parent. It starts from what the watcher observed, never from why it was woken, and each of its stages may be its last:

    observe    what is the parent, and what may be its children?      a controller or parent that can't be served ends it
    claim      adopt orphans that match, release what doesn't         any failure ends it
    ask        what does the hook desire?                             no usable answer ends it, with nothing deleted
    plan       which actions lead from what is to what is desired?    an answer that doesn't fit its controller ends it, with nothing written
    apply      delete, then create and update                         failures are collected
    status     what the hook says, and for which generation           written even when a child failed
    report     done, again, throttled or rejected                     always

To come: finalizers before the claim, related objects before the hook, revisions and rollout between the hook and the plan.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic

from metaloop.common.errors import LeaseLost, MetaloopError
from metaloop.common.observation import Granted, Observation
from metaloop.common.report import SyncReport, Write
from metaloop.common.telemetry.traces import span
from metaloop.reconciler.apply import Applier, Effects
from metaloop.reconciler.core.claim import claims_of, with_adopted
from metaloop.reconciler.core.model import Answer, ChildGroup, Observed, Plan
from metaloop.reconciler.core.outcome import outcome_of
from metaloop.reconciler.core.plan import plan_of
from metaloop.reconciler.core.validate import desired_children
from metaloop.reconciler.errors import Failure, WritesFailed
from metaloop.reconciler.events import FinishedSync, tell
from metaloop.reconciler.observe import Observer, key_of
from metaloop.reconciler.ports import Hooks, LeaseGuard, Recorder, Slot
from metaloop.reconciler.status import StatusWriter


@dataclass(slots=True, kw_only=True)
class Journal:
    """What this sync did so far: true whatever stops it, and reported whatever stopped it."""

    writes: list[Write] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)
    resync_after_seconds: float | None = None
    unknown_keys: tuple[str, ...] = ()

    def note(self, effects: Effects) -> None:
        """Notes what was carried out."""
        self.writes += effects.writes
        self.actions.update(type(done.action).__name__ for done in effects.done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncer:
    """Brings one parent at a time to the state that its hook asks for; serves any number of them at once."""

    applier: Applier
    hooks: Hooks
    status: StatusWriter
    recorder: Recorder
    observer: Observer = field(default_factory=Observer)
    clock: Callable[[], float] = monotonic

    async def sync(self, granted: Granted, slot: Slot, lease: LeaseGuard) -> SyncReport:
        """Syncs the parent that was granted, and returns how it ended. Raises only LeaseLost: then it is another worker's to report."""
        began, journal, failure = self.clock(), Journal(), None
        try:
            with span("sync"):
                await self._stages(granted.observation, journal, slot=slot, lease=lease)
        except LeaseLost:
            raise
        except MetaloopError as error:
            failure = error
        return self._report(granted, journal, failure, seconds=self.clock() - began)

    async def _stages(self, observation: Observation, journal: Journal, *, slot: Slot, lease: LeaseGuard) -> None:
        observed = self.observer.observed(observation)
        children = await self._claimed(observed, journal, lease=lease)
        answer = await self._answered(observed, children, journal, slot=slot)
        plan = plan_of(observed, children, desired_children(answer, observed))
        failures = [
            *await self._applied(plan, observed, journal, lease=lease),
            *await self._status_written(answer, observed, journal, lease=lease),
        ]
        if failures:
            raise WritesFailed(failures)

    async def _claimed(self, observed: Observed, journal: Journal, *, lease: LeaseGuard) -> tuple[ChildGroup, ...]:
        """The parent's children, adopted ones as the API server returned them."""
        claims = claims_of(observed)
        if not claims.actions:
            return claims.groups
        effects = await self.applier.claim(claims.actions, observed=observed, lease=lease)
        journal.note(effects)
        if effects.failures:
            raise WritesFailed(effects.failures)
        return with_adopted(claims.groups, effects.adopted)

    async def _answered(self, observed: Observed, children: tuple[ChildGroup, ...], journal: Journal, *, slot: Slot) -> Answer:
        answer = await self.hooks.desired(observed, children, slot=slot)
        # Whatever comes of the rest: the hook wants to be asked again then.
        journal.resync_after_seconds = answer.resync_after_seconds
        journal.unknown_keys = answer.unknown_keys
        return answer

    async def _applied(self, plan: Plan, observed: Observed, journal: Journal, *, lease: LeaseGuard) -> Sequence[Failure]:
        if not plan:
            return ()
        effects = await self.applier.carry_out(plan, observed=observed, lease=lease)
        journal.note(effects)
        return effects.failures

    async def _status_written(self, answer: Answer, observed: Observed, journal: Journal, *, lease: LeaseGuard) -> Sequence[Failure]:
        try:
            write = await self.status.write(observed, answer.status, lease=lease)
        except LeaseLost:
            raise
        except MetaloopError as error:
            return (Failure(what="write the status", error=error),)
        if write is not None:
            journal.writes.append(write)
            journal.actions["Status"] += 1
        return ()

    def _report(self, granted: Granted, journal: Journal, failure: MetaloopError | None, *, seconds: float) -> SyncReport:
        key, outcome = key_of(granted.observation), outcome_of(failure)
        tell(
            FinishedSync(
                key=key,
                parent=granted.observation.parent,
                outcome=outcome,
                actions=journal.actions,
                seconds=seconds,
                unknown_keys=journal.unknown_keys,
            ),
            self.recorder,
        )
        return SyncReport(
            key=key,
            lease=granted.lease,
            result=outcome.result,
            after_seconds=outcome.after_seconds,
            resync_after_seconds=journal.resync_after_seconds,
            reason=outcome.reason,
            message=outcome.message,
            writes=journal.writes,
        )
