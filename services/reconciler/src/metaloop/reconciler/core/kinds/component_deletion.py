"""Deletes the objects of a component that is being deleted, and then lets it go.

    references  what does it refer to?        only if a hook is to be sent it
    preDelete   call the hook
    gate        do others need its types?     if so, nothing is deleted
    removal     delete everything             in the order of deletion
    postDelete  call the hook                 once nothing is left
    finalizer   remove ours

Each hook may be called several times.
"""

from datetime import datetime
from functools import partial
from typing import Final

from metaloop.common.api.component import stated_user
from metaloop.common.api.references import references_of
from metaloop.common.errors import MetaloopError
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.inventory import managed_types_in
from metaloop.reconciler.core.component.progress import DELETION_BLOCKED, Verdict, next_look_seconds
from metaloop.reconciler.core.component.removal import is_orphaned
from metaloop.reconciler.core.component.waves import Rules
from metaloop.reconciler.core.kinds.component_hooks import call_lifecycle_hook
from metaloop.reconciler.core.kinds.component_run import ComponentRun
from metaloop.reconciler.core.kinds.component_status import end_pass, fail_pass, verdict_on_deletion
from metaloop.reconciler.core.model import ParentEdit
from metaloop.reconciler.core.parent.finalizer import without_finalizer
from metaloop.reconciler.core.steps import Resync, Steps, edit_parent

_DELETING: Final = Verdict(state="Deleting", reason="DeletionProcessing", message="its objects are being deleted")


def delete(run: ComponentRun) -> Steps[None]:
    """Bring the deletion of a component one pass further. Raises the error that prevents it."""
    try:
        verdict = yield from _deleted(run)
    except MetaloopError as error:
        yield from fail_pass(run, verdict_on_deletion(error))
        raise
    if verdict is not None:
        yield from end_pass(run, verdict)
        return
    mutate = partial(without_finalizer, controller=run.controller)
    yield from edit_parent(run.observed, ParentEdit(name="Finalizer", mutate=mutate))


def _deleted(run: ComponentRun) -> Steps[Verdict | None]:
    """Delete what can be deleted now. Returns what is waited for; None if nothing is left."""
    run.acting_as = stated_user(run.controller, run.observed.parent)
    yield from run.load()
    if run.controller.lifecycle_hooks.keys() & {"preDelete", "postDelete"}:
        yield from run.resolve(references_of(run.observed.parent, run.controller.references))
    yield from call_lifecycle_hook(run, "preDelete")
    blockers = yield from blockers_of(run)
    if blockers:
        return (yield from _blocked(run, blockers))
    yield from run.look(())
    yield from run.remove("delete")
    if run.items:
        yield Resync(1.0)
        return _DELETING
    yield from call_lifecycle_hook(run, "postDelete")
    return None


def blockers_of(run: ComponentRun) -> Steps[list[str]]:
    """What stands against the deletion: instances that others made of managed types, and finalizers of others."""
    marks = yield from run.describe()
    additional = run.additional_types()
    types = (*managed_types_in(run.items), *additional)
    run.rules = Rules(marks=marks, now=run.rules.now, managed_types=types)
    others = [each for each in unstructured.finalizers(run.observed.parent) if each != run.controller.finalizer]
    if others:
        return [f"finalizer {each}" for each in others]
    deleted = any(not is_orphaned(item, "delete") for item in run.items.values())
    return (yield from run.find_foreign(types if deleted else additional))


def _blocked(run: ComponentRun, blockers: list[str]) -> Steps[Verdict]:
    """Look again later and later: nothing tells when others delete what is theirs."""
    message = f"deletion is blocked by {', '.join(blockers)}"
    yield Resync(1.0 + next_look_seconds(_seconds_since_deletion(run)))
    return Verdict(state="Deleting", reason=DELETION_BLOCKED, message=message)


def _seconds_since_deletion(run: ComponentRun) -> float:
    deleted_at = unstructured.text(unstructured.metadata(run.observed.parent), "deletionTimestamp")
    return (run.rules.now - datetime.fromisoformat(deleted_at)).total_seconds()
