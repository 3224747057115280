"""What an answer makes of the parent itself, in the order in which it is written: the status, then its metadata and our finalizer in one."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.apply.equality import same
from metaloop.reconciler.core.model import Answer, Observed, ParentEdit
from metaloop.reconciler.core.parent.finalizer import is_deleted_with_finalizer, is_finalized, without_finalizer
from metaloop.reconciler.core.variant import Variant


def edits_of(observed: Observed, answer: Answer, *, variant: Variant, may_remove_finalizer: bool) -> tuple[ParentEdit, ...]:
    """The writes that an answer asks for, whether or not they turn out to change anything. Our finalizer only goes if we `may_remove_finalizer`."""
    removes_finalizer = may_remove_finalizer and is_finalized(observed, answer)
    status = None if removes_finalizer and is_deleted_with_finalizer(observed, answer) else variant.status(observed.parent, answer)
    if status is None or not observed.info.has_status:
        return (_metadata_edit(observed, answer, variant=variant, status=status, removes_finalizer=removes_finalizer),)
    return (_status_edit(status), _metadata_edit(observed, answer, variant=variant, status=None, removes_finalizer=removes_finalizer))


def _status_edit(status: JsonObject) -> ParentEdit:
    return ParentEdit(name="Status", make=lambda parent: with_status(parent, status), subresource="status")


def _metadata_edit(
    observed: Observed, answer: Answer, *, variant: Variant, status: JsonObject | None, removes_finalizer: bool
) -> ParentEdit:
    """All that is no subresource: metadata, our finalizer, and a status where that is none either."""
    controller = observed.controller

    def make(parent: JsonObject) -> JsonObject | None:
        result = variant.changed(parent, answer)
        if status is not None:
            result = with_status(result or parent, status) or result
        if removes_finalizer:
            result = without_finalizer(result or parent, controller) or result
        return result

    return ParentEdit(name="Finalizer" if removes_finalizer else "Metadata", make=make)


def next_status(parent: JsonObject, answered: JsonObject | None) -> JsonObject:
    """The status that `parent` ought to have, given what the hook `answered` when it was shown it."""
    return {**(answered or {}), "observedGeneration": unstructured.generation(parent)}


def with_status(parent: JsonObject, status: JsonObject) -> JsonObject | None:
    """`parent` with `status`, the UID and resourceVersion that it was seen with; None where it has that status, and writing it would change nothing."""
    return None if same(parent.get("status"), status) else {**parent, "status": status}
