"""The pipeline, and the page to read first: claim, ask the hook, plan, apply, write the status.

One sync of one parent, as CompositeController and DecoratorController have it. It starts from what the watcher observed, never from why it
was woken, and each of its stages may be its last:

    pause      is it paused?                                          then nothing is done but to say so, once
    finalizer  shall we have a chance to clean up?                    written before anything that may need cleaning up
    claim      adopt orphans that match, release what doesn't         a parent that can't be served, and any failure, ends it
    related    what else does the hook want to be shown?              what isn't there to be shown yet ends it
    ask        what does the hook desire?                             no usable answer ends it, with nothing deleted
    plan       which actions lead from what is to what is desired?    an answer that doesn't fit its controller ends it, with nothing written
    revise     write down which child follows which revision          only where children roll; any failure ends it, with no child touched
    apply      delete, then create and update                         failures are collected; guards hold back what deletes too much
    parent     its status, its metadata, our finalizer's end          written even when a child failed; the finalizer only leaves when none did

What the two kinds do differently stands in their `Variant`. Where children roll, revisions are claimed as children are, and the hook is
asked about each live one of them. The steps are carried out by a driver (see `steps`), which also reports how the sync ended.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from metaloop.common.api.instructions import is_paused
from metaloop.common.errors import InvalidAnswer, LeaseLost, MetaloopError
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import Forbidden, Invalid
from metaloop.common.observation import ObservedGroup, Related
from metaloop.common.related_query import RelatedQuery
from metaloop.reconciler.core.children.claim import Claims, claims_of, with_adopted
from metaloop.reconciler.core.decision import Decision, DecisionRules, decision_of
from metaloop.reconciler.core.hooks.answer import sync_answer
from metaloop.reconciler.core.hooks.customize import (
    check_scopes,
    fingerprint_of,
    known_resources,
    queries_in,
    related_groups,
    visible_namespace,
)
from metaloop.reconciler.core.hooks.request import customize_request, sync_request
from metaloop.reconciler.core.model import Answer, ChildGroup, Observed, ParentEdit, RequestObjects
from metaloop.reconciler.core.parent.edits import edits_of
from metaloop.reconciler.core.parent.finalizer import hook_to_call, is_ours, with_finalizer
from metaloop.reconciler.core.parent.pause import (
    PAUSED_MESSAGE,
    has_paused_condition,
    is_sync_paused,
    supports_conditions,
    with_paused_condition,
)
from metaloop.reconciler.core.rollout.revisions import RevisionHistory, Revisions, revisions_of, with_revisions_as_children, without_history
from metaloop.reconciler.core.rollout.rollout import combined_answer
from metaloop.reconciler.core.steps import (
    ConditionsUnsupported,
    Forget,
    Learn,
    PauseAnnounced,
    RecordEvent,
    ReportUnknownKeys,
    Resync,
    Steps,
    WriteRevisions,
    call_hook,
    choose_apply_strategy,
    claim_children,
    edit_parent,
    recall,
    subscribe_related,
    write_children,
)
from metaloop.reconciler.core.variant import Variant
from metaloop.reconciler.errors import Failure, WritesFailed

_AT_ONCE_SECONDS: Final = 0.1


def sync(observed: Observed, now: datetime, *, variant: Variant) -> Steps[None]:
    """Bring one parent to the state that its hook asks for. Raises what keeps it from that."""
    observed = observed if variant.is_selected(observed) else replace(observed, is_selected=False)
    if is_sync_paused(observed):
        yield from _pause_told(observed, now, variant)
        return
    yield Forget(PauseAnnounced(observed.uid))
    settled = yield from _finalizer_settled(observed)
    if settled is None or not is_ours(settled):
        return
    observed = settled.with_selector(variant.selector(settled))
    strategy = yield from choose_apply_strategy(observed)
    children = yield from _claimed(variant.claims(observed), observed)
    history = variant.history(observed)
    revisions = yield from _revisions(observed, history)
    related = yield from _related(observed)
    answers = yield from _answered(observed, revisions, RequestObjects(children=children, related=related), variant)
    decision = decision_of(observed, children, revisions, answers, DecisionRules(variant=variant, strategy=strategy, history=history))
    if decision.revisions:
        yield WriteRevisions(observed, decision.revisions)
    failures = yield from _applied(decision, children, observed, is_rolling=history is not None)
    failures = [*failures, *(yield from _parent_settled(decision.answer, observed, variant, is_done=not failures))]
    if failures:
        raise WritesFailed(failures)


# -- pause -------------------------------------------------------------------------------------------------------------------


def _pause_told(observed: Observed, now: datetime, variant: Variant) -> Steps[None]:
    """Say once that a parent is paused. Where all parents of its controller are, that is said on the controller."""
    if not is_paused(observed.parent) or not is_ours(observed) or has_paused_condition(observed.parent):
        return
    is_written = yield from _pause_written(observed, now, variant)
    if not is_written:
        if (yield from recall(PauseAnnounced(observed.uid))):
            return
        yield Learn(PauseAnnounced(observed.uid))
    yield RecordEvent(observed.parent, "Normal", "Paused", f"Paused: {PAUSED_MESSAGE}")


def _pause_written(observed: Observed, now: datetime, variant: Variant) -> Steps[bool]:
    """Whether the parent's status says now that it is paused."""
    if not variant.owns_status or not supports_conditions(observed):
        return False
    if (yield from recall(ConditionsUnsupported(observed.info.id))):
        return False
    pause = ParentEdit(name="Paused", make=partial(with_paused_condition, at=now.strftime("%Y-%m-%dT%H:%M:%SZ")), subresource="status")
    try:
        written = yield from edit_parent(observed, pause)
    except (Forbidden, Invalid):
        written = observed.parent
    if written is None:
        return False
    if not has_paused_condition(written):
        # Its kind has no place for conditions, or for such ones: there is no use in trying it with each of them again.
        yield Learn(ConditionsUnsupported(observed.info.id))
    return has_paused_condition(written)


# -- before the hook ---------------------------------------------------------------------------------------------------------


def _finalizer_settled(observed: Observed) -> Steps[Observed | None]:
    """The parent with our finalizer, or without it, as its controller wants it; None where there is no such parent any more."""
    controller, is_selected = observed.controller, observed.is_selected
    edit = ParentEdit(name="Finalizer", make=partial(with_finalizer, controller=controller, is_selected=is_selected))
    parent = yield from edit_parent(observed, edit)
    return observed.with_parent(parent) if parent is not None else None


def _claimed(claims: Claims, observed: Observed) -> Steps[tuple[ChildGroup, ...]]:
    """The parent's children, adopted ones as the API server returned them."""
    if not claims.actions:
        return claims.groups
    effects = yield from claim_children(observed, claims.actions)
    if effects.failures:
        raise WritesFailed(effects.failures)
    return with_adopted(claims.groups, effects.adopted)


def _revisions(observed: Observed, history: RevisionHistory | None) -> Steps[Revisions]:
    """The revisions that the hook is asked about: where nothing rolls, only the parent as it is."""
    if history is None:
        return without_history(observed)
    owner = with_revisions_as_children(observed)
    [own] = yield from _claimed(claims_of(owner), owner)
    return revisions_of(observed, own.objects, history=history)


# -- related objects ---------------------------------------------------------------------------------------------------------


def _related(observed: Observed) -> Steps[tuple[ObservedGroup, ...]]:
    """What the customize hook wants the others to be shown; it is asked only where it would be shown something that it wasn't shown before."""
    hook = observed.controller.hooks.customize
    if hook is None or hook.webhook is None:
        return ()
    fingerprint, related = fingerprint_of(observed), observed.related
    if related is None or related.fingerprint != fingerprint:
        [body] = yield from call_hook(observed, hook, {"": customize_request(observed)})
        queries = queries_in(body, observed, version=hook.version, is_strict=hook.strict)
        related = yield from _subscribed(fingerprint, queries, visible_namespace=visible_namespace(observed, hook.version))
    return related_groups(related)


def _subscribed(fingerprint: str, queries: Sequence[RelatedQuery], *, visible_namespace: str) -> Steps[Related]:
    """What is selected by rules that may stand. Others, and those that can't be judged yet, the next sync has to ask for again."""
    related = yield from subscribe_related(fingerprint, queries)
    try:
        check_scopes(queries, known_resources(related), visible_namespace=visible_namespace)
    except InvalidAnswer:
        yield from subscribe_related("")
        raise
    if related.unknown:
        yield from subscribe_related("", queries)
    return related


# -- the hook ----------------------------------------------------------------------------------------------------------------


def _answered(observed: Observed, revisions: Revisions, shown: RequestObjects, variant: Variant) -> Steps[list[Answer]]:
    """What the hook answers for each live revision."""
    hook, keys = hook_to_call(observed), variant.keys
    bodies = {each.name: sync_request(observed.with_parent(each.parent), shown, hook=hook, keys=keys) for each in revisions.live}
    answered = yield from call_hook(observed, hook, bodies)
    answers = [sync_answer(body, is_strict=hook.strict, keys=keys) for body in answered]
    combined = combined_answer(answers)
    # Whatever comes of the rest: the hook wants to be asked again then.
    if combined.resync_after_seconds is not None:
        yield Resync(combined.resync_after_seconds)
    if combined.unknown_keys:
        yield ReportUnknownKeys(combined.unknown_keys)
    return answers


# -- after the hook ----------------------------------------------------------------------------------------------------------


def _applied(decision: Decision, children: tuple[ChildGroup, ...], observed: Observed, *, is_rolling: bool) -> Steps[Sequence[Failure]]:
    """What failed of the writes to children."""
    if not decision.children:
        return ()
    effects = yield from write_children(observed, decision.children, children)
    if effects.has_noops and is_rolling:
        # A rollout may have waited for just this, and what changed nothing is followed by no event.
        yield Resync(_AT_ONCE_SECONDS)
    return effects.failures


def _parent_settled(answer: Answer, observed: Observed, variant: Variant, *, is_done: bool) -> Steps[Sequence[Failure]]:
    """Writes what the answer says of the parent itself; `is_done`: nothing else failed, so that it may be let go."""
    failures: list[Failure] = []
    parent: JsonObject | None = observed.parent
    for edit in edits_of(observed, answer, variant=variant, may_remove_finalizer=is_done):
        if parent is None:
            break
        try:
            parent = yield from edit_parent(observed.with_parent(parent), edit)
        except LeaseLost:
            raise
        except MetaloopError as error:
            failures.append(Failure(what=f"write the parent's {edit.name.lower()}", error=error))
    return failures
