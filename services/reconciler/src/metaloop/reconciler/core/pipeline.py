"""The pipeline, and the page to read first: claim children, call the hook, plan, apply, write the status.

This is one sync of one parent for the kinds CompositeController and DecoratorController. It begins with what the
watcher observed, whatever caused the sync. Each stage may be the last:

    pause      is the parent paused?                           if so, say it once, and do nothing else
    finalizer  does it need our finalizer?                     add it before anything exists that needs cleaning up
    claim      adopt matching orphans, release the others      ends with an invalid parent, and with any failure
    related    which related objects does the hook ask for?    ends if these can't be shown yet
    hook       what does the hook desire?                      ends without a usable answer; nothing is deleted
    plan       which actions lead from observed to desired?    ends with an invalid answer, before anything is written
    revisions  record which child follows which revision       only if children roll; ends with any failure
    children   delete, then create and update                  collects failures; guards hold back excessive deletions
    parent     write its status, metadata and finalizer        even after failures; the finalizer stays if there are any

The `Variant` of a kind says what it does differently. If children roll, revisions are claimed as children are, and the
hook is called for each live revision. A driver carries out the steps and reports how the sync ended (see `steps`).
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from metaloop.common.errors import InvalidAnswer, LeaseLost, MetaloopError
from metaloop.common.json import JsonObject
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
from metaloop.reconciler.core.parent.pause import is_sync_paused
from metaloop.reconciler.core.pause_announcement import announce_pause
from metaloop.reconciler.core.rollout.revisions import RevisionHistory, Revisions, revisions_of, with_revisions_as_children, without_history
from metaloop.reconciler.core.rollout.rollout import combined_answer
from metaloop.reconciler.core.steps import (
    Forget,
    PauseAnnounced,
    ReportUnknownKeys,
    Resync,
    Steps,
    WriteRevisions,
    call_hook,
    choose_apply_strategy,
    claim_children,
    edit_parent,
    subscribe_related,
    write_children,
)
from metaloop.reconciler.core.variant import Variant
from metaloop.reconciler.errors import Failure, WritesFailed

_ROLLOUT_RESYNC_SECONDS: Final = 0.1


def sync(observed: Observed, now: datetime, *, variant: Variant) -> Steps[None]:
    """Bring one parent to the state that its hook desires. Raises the error that prevents it."""
    observed = observed if variant.is_selected(observed) else replace(observed, is_selected=False)
    if is_sync_paused(observed):
        yield from announce_pause(observed, now, owns_status=variant.owns_status)
        return
    yield Forget(PauseAnnounced(observed.uid))
    prepared = yield from _sync_finalizer(observed)
    if prepared is None or not is_ours(prepared):
        return
    observed = prepared.with_selector(variant.selector(prepared))
    strategy = yield from choose_apply_strategy(observed)
    children = yield from _claim(variant.claims(observed), observed)
    history = variant.history(observed)
    revisions = yield from _claim_revisions(observed, history)
    related = yield from _find_related(observed)
    answers = yield from _call_hook(observed, revisions, RequestObjects(children=children, related=related), variant)
    decision = decision_of(observed, children, revisions, answers, DecisionRules(variant=variant, strategy=strategy, history=history))
    if decision.revisions:
        yield WriteRevisions(observed, decision.revisions)
    failures = yield from _apply(decision, children, observed, is_rolling=history is not None)
    failures = [*failures, *(yield from _write_parent(decision.answer, observed, variant, is_done=not failures))]
    if failures:
        raise WritesFailed(failures)


# -- before the hook ---------------------------------------------------------------------------------------------------


def _sync_finalizer(observed: Observed) -> Steps[Observed | None]:
    """Add or remove our finalizer, as the controller requires. Returns the parent as it is now; None if it is gone."""
    controller, is_selected = observed.controller, observed.is_selected
    edit = ParentEdit(name="Finalizer", mutate=partial(with_finalizer, controller=controller, is_selected=is_selected))
    parent = yield from edit_parent(observed, edit)
    return observed.with_parent(parent) if parent is not None else None


def _claim(claims: Claims, observed: Observed) -> Steps[tuple[ChildGroup, ...]]:
    """Adopt and release. Returns the parent's children, adopted ones as the API server returned them."""
    if not claims.actions:
        return claims.groups
    effects = yield from claim_children(observed, claims.actions)
    if effects.failures:
        raise WritesFailed(effects.failures)
    return with_adopted(claims.groups, effects.adopted)


def _claim_revisions(observed: Observed, history: RevisionHistory | None) -> Steps[Revisions]:
    """Claim the parent's revisions. Returns those to call the hook for: only the present one if no child rolls."""
    if history is None:
        return without_history(observed)
    owner = with_revisions_as_children(observed)
    [own] = yield from _claim(claims_of(owner), owner)
    return revisions_of(observed, own.objects, history=history)


# -- related objects ---------------------------------------------------------------------------------------------------


def _find_related(observed: Observed) -> Steps[tuple[ObservedGroup, ...]]:
    """Returns the related objects. The customize hook is called only if its request would differ from the last one."""
    hook = observed.controller.hooks.customize
    if hook is None or hook.webhook is None:
        return ()
    fingerprint, related = fingerprint_of(observed), observed.related
    if related is None or related.fingerprint != fingerprint:
        [body] = yield from call_hook(observed, hook, {"": customize_request(observed)})
        queries = queries_in(body, observed, version=hook.version, is_strict=hook.strict)
        related = yield from _subscribe(fingerprint, queries, namespace=visible_namespace(observed, hook.version))
    return related_groups(related)


def _subscribe(fingerprint: str, queries: Sequence[RelatedQuery], *, namespace: str) -> Steps[Related]:
    """Subscribe to valid queries. After invalid ones, and ones that can't be checked yet, the next sync asks again."""
    related = yield from subscribe_related(fingerprint, queries)
    try:
        check_scopes(queries, known_resources(related), only_namespace=namespace)
    except InvalidAnswer:
        yield from subscribe_related("")
        raise
    if related.unknown:
        yield from subscribe_related("", queries)
    return related


# -- the hook ----------------------------------------------------------------------------------------------------------


def _call_hook(observed: Observed, revisions: Revisions, objects: RequestObjects, variant: Variant) -> Steps[list[Answer]]:
    """Call the hook for each live revision. Returns its answers, in their order."""
    hook, keys = hook_to_call(observed), variant.keys
    bodies = {each.name: sync_request(observed.with_parent(each.parent), objects, hook=hook, keys=keys) for each in revisions.live}
    answered = yield from call_hook(observed, hook, bodies)
    answers = [sync_answer(body, is_strict=hook.strict, keys=keys) for body in answered]
    combined = combined_answer(answers)
    # The resync that the hook asks for happens even if the rest of the sync fails.
    if combined.resync_after_seconds is not None:
        yield Resync(combined.resync_after_seconds)
    if combined.unknown_keys:
        yield ReportUnknownKeys(combined.unknown_keys)
    return answers


# -- after the hook ----------------------------------------------------------------------------------------------------


def _apply(decision: Decision, children: tuple[ChildGroup, ...], observed: Observed, *, is_rolling: bool) -> Steps[Sequence[Failure]]:
    """Write the children. Returns the failures."""
    if not decision.children:
        return ()
    effects = yield from write_children(observed, decision.children, children)
    if effects.has_noops and is_rolling:
        # The rollout may be waiting for just this child, and no event follows a no-op write.
        yield Resync(_ROLLOUT_RESYNC_SECONDS)
    return effects.failures


def _write_parent(answer: Answer, observed: Observed, variant: Variant, *, is_done: bool) -> Steps[Sequence[Failure]]:
    """Write the parent itself. Returns the failures. Our finalizer may go only if `is_done`: nothing else failed."""
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
