"""The edits of the parent that an answer asks for: first its status, then its metadata and our finalizer together."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.apply.equality import same
from metaloop.reconciler.core.model import Answer, Observed, ParentEdit
from metaloop.reconciler.core.parent.finalizer import is_deleted_with_finalizer, is_finalized, without_finalizer
from metaloop.reconciler.core.variant import Variant


def edits_of(observed: Observed, answer: Answer, *, variant: Variant, may_remove_finalizer: bool) -> tuple[ParentEdit, ...]:
    """The edits in their order. Each may turn out to change nothing."""
    removes_finalizer = may_remove_finalizer and is_finalized(observed, answer)
    is_last_write = removes_finalizer and is_deleted_with_finalizer(observed, answer)
    status = None if is_last_write else variant.next_status(observed.parent, answer)
    if status is None or not observed.info.has_status:
        return (_metadata_edit(observed, answer, variant=variant, status=status, removes_finalizer=removes_finalizer),)
    return (_status_edit(status), _metadata_edit(observed, answer, variant=variant, status=None, removes_finalizer=removes_finalizer))


def _status_edit(status: JsonObject) -> ParentEdit:
    return ParentEdit(name="Status", mutate=lambda parent: with_status(parent, status), subresource="status")


def _metadata_edit(
    observed: Observed, answer: Answer, *, variant: Variant, status: JsonObject | None, removes_finalizer: bool
) -> ParentEdit:
    """One edit of metadata, our finalizer, and the `status` if the kind does not have it as a subresource."""
    controller = observed.controller

    def mutate(parent: JsonObject) -> JsonObject | None:
        result = variant.with_changes(parent, answer)
        if status is not None:
            result = with_status(result or parent, status) or result
        if removes_finalizer:
            result = without_finalizer(result or parent, controller) or result
        return result

    return ParentEdit(name="Finalizer" if removes_finalizer else "Metadata", mutate=mutate)


def next_status(parent: JsonObject, answered: JsonObject | None) -> JsonObject:
    """The status that `parent` should have: what the hook `answered`, and the generation that the answer is about."""
    return {**(answered or {}), "observedGeneration": unstructured.generation(parent)}


def with_status(parent: JsonObject, status: JsonObject) -> JsonObject | None:
    """`parent` with `status` and with its UID and resourceVersion. None if it has that status already."""
    return None if same(parent.get("status"), status) else {**parent, "status": status}
