"""Decides whether the parent has our finalizer, which hook to call, and whether to write the children.

A controller puts a finalizer on its parents if its spec has a finalize hook. An entry without a webhook counts: the
sync hook is then called in its place. Rules

    alive, selected                           add the finalizer before anything else; call sync; manage children
    not selected, finalizer                   call finalize; manage children
    not selected, no finalizer                not ours
    deleting, finalizer                       call finalize; manage children, unless the garbage collector handles them
    deleting, no finalizer, others' remain    call finalize; leave children alone
    deleting, no hook, others' remain         call sync; leave children alone
    no finalize hook, finalizer               remove it before anything else

`finalized: true` counts only while the parent is being finalized. From a parent that is alive and selected, it would
remove what the next sync adds again.

Once a parent that is being deleted is finalized, its children are left to the garbage collector. A parent that is only
no longer selected keeps its children, and nobody else manages them. So they are first brought to the state that the
hook desires, and the finalizer is removed only if all of that succeeded.
"""

from typing import Final

from metaloop.common.api.controller import Controller
from metaloop.common.api.hook import Hook
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.model import Answer, Observed

_COLLECTED: Final = frozenset({"foregroundDeletion", "orphan"})
"""With these finalizers the garbage collector handles the dependents. To write children would be to fight it."""


def is_ours(observed: Observed) -> bool:
    """Whether this controller serves the parent."""
    return observed.is_selected or observed.has_finalizer


def with_finalizer(parent: JsonObject, *, controller: Controller, is_selected: bool) -> JsonObject | None:
    """`parent` with or without our finalizer, as the rules require before anything else. None if it is so already."""
    has_ours = controller.finalizer in unstructured.finalizers(parent)
    if controller.hooks.finalize is None:
        return without_finalizer(parent, controller) if has_ours else None
    if has_ours or not is_selected or unstructured.is_deleting(parent):
        return None
    return _with_finalizers(parent, [*unstructured.finalizers(parent), controller.finalizer])


def without_finalizer(parent: JsonObject, controller: Controller) -> JsonObject | None:
    """`parent` without our finalizer. None if it has none."""
    rest = [each for each in unstructured.finalizers(parent) if each != controller.finalizer]
    return _with_finalizers(parent, rest) if len(rest) < len(unstructured.finalizers(parent)) else None


def hook_to_call(observed: Observed) -> Hook:
    """The hook to call now. Raises InvalidSpec if there is none."""
    hooks = observed.controller.hooks
    if observed.is_finalizing and hooks.finalize is not None and hooks.finalize.webhook is not None:
        return hooks.finalize
    if hooks.sync is None or hooks.sync.webhook is None:
        raise InvalidSpec("spec.hooks.sync.webhook", "is missing: there is no hook to call")
    return hooks.sync


def is_finalized(observed: Observed, answer: Answer) -> bool:
    """Whether the hook says that the parent is finalized, so that our finalizer may go."""
    return answer.finalized and observed.has_finalizer and observed.is_finalizing


def reaches_children(observed: Observed) -> bool:
    """Whether we may write the children, as long as the parent is not finalized."""
    if not observed.is_deleting:
        return True
    return observed.has_finalizer and _COLLECTED.isdisjoint(unstructured.finalizers(observed.parent))


def manages_children(observed: Observed, answer: Answer) -> bool:
    """Whether to bring the children to the state that the hook desires."""
    return reaches_children(observed) and not (observed.is_deleting and answer.finalized)


def is_deleted_with_finalizer(observed: Observed, answer: Answer) -> bool:
    """Whether removing our finalizer deletes the parent. Nobody would read a status written before."""
    return is_finalized(observed, answer) and observed.is_deleting and len(unstructured.finalizers(observed.parent)) == 1


def _with_finalizers(parent: JsonObject, finalizers: list[str]) -> JsonObject:
    return {**parent, "metadata": {**unstructured.metadata(parent), "finalizers": [*finalizers]}}
