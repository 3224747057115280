"""Whether to add, keep or remove our finalizer, and which hook that calls for.

A controller has a finalizer on its parents if its spec has a finalize hook (an entry without a webhook counts: the sync hook is asked then). Rules

    alive, selected                                    add the finalizer before anything else; ask sync; manage children
    not selected, finalizer                            ask finalize; manage children
    not selected, no finalizer                         not ours
    deleting, finalizer                                ask finalize; manage children, unless the garbage collector waits for them or lets them go
    deleting, finalizer gone, others' remain           ask finalize; leave children alone
    deleting, no finalize hook, others' remain         ask sync; leave children alone
    no finalize hook, finalizer                        remove it before anything else

`finalized: true` is heard only where finalizing is called for: from an alive and selected parent's hook it would take away what the next sync puts back. Then,
of a parent that is being deleted, the children are left to the garbage collector at once. Those of a parent that is only no longer selected have
nobody else: they become what the hook desires first, and the finalizer goes only when all of that was done.
"""

from typing import Final

from metaloop.common.api.controller import Controller
from metaloop.common.api.hook import Hook
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.model import Answer, Observed

_COLLECTED: Final = frozenset({"foregroundDeletion", "orphan"})
"""Finalizers by which the garbage collector deals with dependents itself: to write children then is to fight it."""


def is_ours(observed: Observed) -> bool:
    """Whether the parent is this controller's to serve."""
    return observed.is_selected or observed.has_finalizer


def with_finalizer(parent: JsonObject, *, controller: Controller, is_selected: bool) -> JsonObject | None:
    """`parent` with our finalizer, or without it, as it has to be before anything else; None where it is as it has to be."""
    has_ours = controller.finalizer in unstructured.finalizers(parent)
    if controller.hooks.finalize is None:
        return without_finalizer(parent, controller) if has_ours else None
    if has_ours or not is_selected or unstructured.is_deleting(parent):
        return None
    return _with_finalizers(parent, [*unstructured.finalizers(parent), controller.finalizer])


def without_finalizer(parent: JsonObject, controller: Controller) -> JsonObject | None:
    """`parent` without our finalizer; None where it has none."""
    rest = [each for each in unstructured.finalizers(parent) if each != controller.finalizer]
    return _with_finalizers(parent, rest) if len(rest) < len(unstructured.finalizers(parent)) else None


def hook_to_call(observed: Observed) -> Hook:
    """The hook that says what is desired now. Raises InvalidSpec where there is none."""
    hooks = observed.controller.hooks
    if observed.is_finalizing and hooks.finalize is not None and hooks.finalize.webhook is not None:
        return hooks.finalize
    if hooks.sync is None or hooks.sync.webhook is None:
        raise InvalidSpec("spec.hooks.sync.webhook", "is missing: there is no hook to ask")
    return hooks.sync


def is_finalized(observed: Observed, answer: Answer) -> bool:
    """Whether the hook is done with the parent, and our finalizer with it."""
    return answer.finalized and observed.has_finalizer and observed.is_finalizing


def reaches_children(observed: Observed) -> bool:
    """Whether the children are ours to write, if the hook is not done with the parent."""
    if not observed.is_deleting:
        return True
    return observed.has_finalizer and _COLLECTED.isdisjoint(unstructured.finalizers(observed.parent))


def manages_children(observed: Observed, answer: Answer) -> bool:
    """Whether the children are to become what the hook desires."""
    return reaches_children(observed) and not (observed.is_deleting and answer.finalized)


def is_deleted_with_finalizer(observed: Observed, answer: Answer) -> bool:
    """Whether the parent is gone once our finalizer is: a status would be written for nobody."""
    return is_finalized(observed, answer) and observed.is_deleting and len(unstructured.finalizers(observed.parent)) == 1


def _with_finalizers(parent: JsonObject, finalizers: list[str]) -> JsonObject:
    return {**parent, "metadata": {**unstructured.metadata(parent), "finalizers": [*finalizers]}}
