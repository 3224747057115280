"""The pipeline, and the page to read first: observe, claim, ask the hook, plan, apply, write the status.

One sync of one parent. It starts from what the watcher observed, never from why it was woken, and each of its stages may be its last:

    observe    what is the parent, and what may be its children?      a controller that can't be served ends it, and so does a pause
    finalizer  shall we have a chance to clean up?                    written before anything that may need cleaning up
    claim      adopt orphans that match, release what doesn't         a parent that can't be served, and any failure, ends it
    related    what else does the hook want to be shown?              what isn't there to be shown yet ends it
    ask        what does the hook desire?                             no usable answer ends it, with nothing deleted
    plan       which actions lead from what is to what is desired?    an answer that doesn't fit its controller ends it, with nothing written
    revise     write down which child follows which revision          only where children roll; any failure ends it, with no child touched
    guard      does the answer delete more than it may unconfirmed?   such deletions are held back, the rest goes on
    apply      delete, then create and update                         failures are collected
    parent     its status, its metadata, our finalizer's end          written even when a child failed; the finalizer only leaves when none did
    report     done, again, throttled or rejected                     always

What kinds of controllers do differently stands in their `Variant`. Where children roll, revisions are claimed as children are, and the hook is asked about each
live one of them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import Final

from metaloop.common.api.instructions import is_paused
from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.errors import InvalidAnswer, LeaseLost, MetaloopError
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import Forbidden, Invalid
from metaloop.common.observation import Granted, ObservedGroup, Related
from metaloop.common.report import SyncReport, Write
from metaloop.common.telemetry.traces import span
from metaloop.reconciler.announce import FinishedSync, tell
from metaloop.reconciler.children_writer import ChildrenWriter, Effects
from metaloop.reconciler.core.children.claim import Claims, claims_of, with_adopted
from metaloop.reconciler.core.decision import decision_of
from metaloop.reconciler.core.hooks.customize import bound_to, fingerprint_of, known_in, refuse_out_of_reach, shown_of
from metaloop.reconciler.core.kinds.registry import variant_of
from metaloop.reconciler.core.model import Answer, ChildGroup, Observed, Plan, Shown
from metaloop.reconciler.core.outcome import outcome_of
from metaloop.reconciler.core.parent.edits import edits_of
from metaloop.reconciler.core.parent.finalizer import is_ours, with_finalizer
from metaloop.reconciler.core.parent.pause import TOLD, has_room_for_it, is_at_rest, says_paused, with_pause
from metaloop.reconciler.core.rollout.revisions import (
    RevisionAction,
    Revisions,
    as_owner_of_revisions,
    is_rolling,
    only_present,
    revisions_of,
)
from metaloop.reconciler.core.rollout.rollout import combined_answer
from metaloop.reconciler.deletion_guards import DeletionGuards
from metaloop.reconciler.errors import Failure, WritesFailed
from metaloop.reconciler.observe import Observer, key_of
from metaloop.reconciler.parent_writer import Edit, ParentWriter
from metaloop.reconciler.pause_notices import PauseNotices
from metaloop.reconciler.ports import Follower, Hooks, LeaseGuard, Recorder, Slot
from metaloop.reconciler.revision_writer import RevisionWriter
from metaloop.reconciler.strategies import Strategies

_AT_ONCE_SECONDS: Final = 0.1


@dataclass(slots=True, kw_only=True)
class Journal:
    """What this sync did so far: true whatever stops it, and reported whatever stopped it."""

    writes: list[Write] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)
    resync_after_seconds: float | None = None
    unknown_keys: tuple[str, ...] = ()

    def again_within(self, seconds: float) -> None:
        """The parent is to be synced again so soon, or sooner where that was wanted already."""
        wanted = self.resync_after_seconds
        self.resync_after_seconds = seconds if wanted is None else min(wanted, seconds)

    def note(self, effects: Effects) -> None:
        """Notes what was carried out."""
        self.writes += effects.writes
        self.actions.update(type(done.action).__name__ for done in effects.done)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one sync has in hand: its share of CPU and API calls, its right to write, and its journal."""

    slot: Slot
    lease: LeaseGuard
    journal: Journal = field(default_factory=Journal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Syncer:
    """Brings one parent at a time to the state that its hook asks for; serves any number of them at once."""

    applier: ChildrenWriter
    hooks: Hooks
    parents: ParentWriter
    revisions: RevisionWriter
    follower: Follower
    recorder: Recorder
    observer: Observer = field(default_factory=Observer)
    strategies: Strategies = field(default_factory=Strategies)
    guards: DeletionGuards = field(default_factory=DeletionGuards)
    pauses: PauseNotices = field(default_factory=PauseNotices)
    clock: Callable[[], float] = monotonic

    async def sync(self, granted: Granted, slot: Slot, lease: LeaseGuard) -> SyncReport:
        """Syncs the parent that was granted, and returns how it ended. Raises only LeaseLost: then it is another worker's to report."""
        began, turn, failure = self.clock(), Turn(slot=slot, lease=lease), None
        try:
            with span("sync"):
                await self._stages(granted, turn)
        except LeaseLost:
            raise
        except MetaloopError as error:
            failure = error
        return self._report(granted, turn.journal, failure, seconds=self.clock() - began)

    async def _stages(self, granted: Granted, turn: Turn) -> None:
        seen = self.observer.observed(granted.observation)
        if is_at_rest(seen):
            await self._pause_told(seen, turn)
            return
        self.pauses.forget(seen.uid)
        observed = await self._finalizer_settled(seen, turn)
        if observed is None or not is_ours(observed):
            return
        variant = variant_of(observed.controller.id)
        observed = observed.with_selector(variant.selector(observed))
        how = self.applier.without_noops(await self.strategies.of(observed))
        children = await self._claimed(variant.claims(observed), observed, turn)
        revisions = await self._revisions(observed, turn)
        related = await self._related(observed, granted, turn)
        answers = await self._answered(observed, revisions, Shown(children=children, related=related), turn)
        decision = decision_of(observed, children, revisions, answers, how=how)
        await self._revised(decision.revisions, observed, turn)
        guarded = self.guards.passed(decision.children, children, observed)
        failures = await self._applied(guarded.plan, observed, turn)
        if guarded.held is not None:
            failures = [*failures, Failure(what="delete children", error=guarded.held)]
        failures = [*failures, *await self._parent_settled(decision.answer, observed, turn, is_done=not failures)]
        if failures:
            raise WritesFailed(failures)

    async def _pause_told(self, observed: Observed, turn: Turn) -> None:
        """Says once that a parent is paused; where all parents of its controller are, that is said on the controller."""
        if not is_paused(observed.parent) or not is_ours(observed) or says_paused(observed.parent):
            return
        may_be_written = has_room_for_it(observed) and self.pauses.has_room(observed.info.id)
        if (may_be_written and await self._pause_written(observed, turn)) or self.pauses.is_news(observed.uid):
            self.recorder.record(observed.parent, "Normal", "Paused", f"Paused: {TOLD}")

    async def _pause_written(self, observed: Observed, turn: Turn) -> bool:
        """Whether the parent's status says now that it is paused."""
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        try:
            told = await self._edited("Paused", partial(with_pause, at=at), observed, turn, subresource="status")
        except (Forbidden, Invalid):
            told = observed.parent
        if told is not None and not says_paused(told):
            # Its kind has no place for conditions, or for such ones: there is no use in trying it with each of them again.
            self.pauses.note_roomless(observed.info.id)
        return told is not None and says_paused(told)

    async def _finalizer_settled(self, observed: Observed, turn: Turn) -> Observed | None:
        """The parent with our finalizer, or without it, as its controller wants it; None where there is no such parent any more."""
        controller = observed.controller

        def edit(parent: JsonObject) -> JsonObject | None:
            return with_finalizer(parent, controller, is_selected=observed.is_selected)

        edited = await self._edited("Finalizer", edit, observed, turn)
        return observed.with_parent(edited) if edited is not None else None

    async def _claimed(self, claims: Claims, observed: Observed, turn: Turn) -> tuple[ChildGroup, ...]:
        """The parent's children, adopted ones as the API server returned them."""
        if not claims.actions:
            return claims.groups
        effects = await self.applier.claim(claims.actions, observed=observed, lease=turn.lease)
        turn.journal.note(effects)
        if effects.failures:
            raise WritesFailed(effects.failures)
        return with_adopted(claims.groups, effects.adopted)

    async def _related(self, observed: Observed, granted: Granted, turn: Turn) -> tuple[ObservedGroup, ...]:
        """What the customize hook wants the others to be shown; it is asked only where it would be shown something that it wasn't shown before."""
        hook = observed.controller.hooks.customize
        if hook is None or hook.webhook is None:
            return ()
        fingerprint, related = fingerprint_of(observed), observed.related
        if related is None or related.fingerprint != fingerprint:
            interests = await self.hooks.interests(observed, slot=turn.slot)
            request = RelatedRequest(key=key_of(granted.observation), lease=granted.lease, fingerprint=fingerprint, queries=interests)
            related = await self._followed(request, granted.shard, bound_to=bound_to(observed, hook.version))
        return shown_of(related)

    async def _followed(self, request: RelatedRequest, shard: str, *, bound_to: str) -> Related:
        """What is selected by rules that may stand. Others, and those that can't be judged yet, the next sync has to ask for again."""
        related = await self.follower.related(shard, request)
        try:
            refuse_out_of_reach(request.queries, known_in(related), bound_to=bound_to)
        except InvalidAnswer:
            await self.follower.related(shard, replace(request, fingerprint="", queries=()))
            raise
        if related.unknown:
            await self.follower.related(shard, replace(request, fingerprint=""))
        return related

    async def _revisions(self, observed: Observed, turn: Turn) -> Revisions:
        """The revisions that the hook is asked about: where nothing rolls, only the parent as it is."""
        if not is_rolling(observed):
            return only_present(observed)
        owner = as_owner_of_revisions(observed)
        [own] = await self._claimed(claims_of(owner), owner, turn)
        return revisions_of(observed, own.objects)

    async def _answered(self, observed: Observed, revisions: Revisions, shown: Shown, turn: Turn) -> list[Answer]:
        answers = await self.hooks.desired(observed, shown, revisions.live, slot=turn.slot)
        # Whatever comes of the rest: the hook wants to be asked again then.
        whole = combined_answer(answers)
        turn.journal.resync_after_seconds = whole.resync_after_seconds
        turn.journal.unknown_keys = whole.unknown_keys
        return answers

    async def _revised(self, actions: Sequence[RevisionAction], observed: Observed, turn: Turn) -> None:
        if not actions:
            return
        async for write in self.revisions.carry_out(actions, observed=observed, lease=turn.lease):
            turn.journal.writes.append(write)
            turn.journal.actions["Revision"] += 1

    async def _applied(self, plan: Plan, observed: Observed, turn: Turn) -> Sequence[Failure]:
        if not plan:
            return ()
        effects = await self.applier.carry_out(plan, observed=observed, lease=turn.lease)
        turn.journal.note(effects)
        if effects.is_wiser and is_rolling(observed):
            # A rollout may have waited for just this, and what changed nothing is followed by no event.
            turn.journal.again_within(_AT_ONCE_SECONDS)
        return effects.failures

    async def _parent_settled(self, answer: Answer, observed: Observed, turn: Turn, *, is_done: bool) -> Sequence[Failure]:
        """Writes what the answer says of the parent itself; `is_done`: nothing else failed, so that it may be let go."""
        failures: list[Failure] = []
        parent: JsonObject | None = observed.parent
        for edit in edits_of(observed, answer, variant=variant_of(observed.controller.id), may_leave=is_done):
            if parent is None:
                break
            try:
                parent = await self._edited(edit.name, edit.make, observed.with_parent(parent), turn, subresource=edit.subresource)
            except LeaseLost:
                raise
            except MetaloopError as error:
                failures.append(Failure(what=f"write the parent's {edit.name.lower()}", error=error))
        return failures

    async def _edited(self, name: str, edit: Edit, observed: Observed, turn: Turn, *, subresource: str = "") -> JsonObject | None:
        edited = await self.parents.edit(observed, edit, lease=turn.lease, subresource=subresource)
        if edited.write is not None:
            turn.journal.writes.append(edited.write)
            turn.journal.actions[name] += 1
        return edited.parent

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
            fault=outcome.fault,
            message=outcome.message,
            writes=journal.writes,
        )
