"""What a pass over a component writes into its status, and what it tells of errors there."""

from metaloop.common.errors import MetaloopError, Transient
from metaloop.common.faults import Fault
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.progress import READY, TIMEOUT, Verdict, not_ready, status_of, stored_progress
from metaloop.reconciler.core.kinds.component_run import ComponentRun
from metaloop.reconciler.core.model import ParentEdit
from metaloop.reconciler.core.parent.edits import with_status
from metaloop.reconciler.core.steps import CountPass, RecordEvent, Steps, edit_parent


def end_pass(run: ComponentRun, verdict: Verdict) -> Steps[None]:
    """Count a pass, write its status, and tell readers of the component's events if that is news."""
    is_change = unstructured.text(run.former, "state") != verdict.state
    seconds = stored_progress(run.former).seconds(run.rules.now) if is_change and verdict.state == READY else None
    yield CountPass(state=verdict.state, reason=verdict.reason, is_change=is_change, ready_after_seconds=seconds)
    yield from write_status(run, verdict)


def fail_pass(run: ComponentRun, verdict: Verdict) -> Steps[None]:
    """The same for a pass that ends with an error. The driver records the event about that."""
    run.is_silent = True
    yield from end_pass(run, verdict)


def write_status(run: ComponentRun, verdict: Verdict) -> Steps[JsonObject | None]:
    """Write the status with the inventory. Returns the component as it is now; None if it is gone."""
    if not run.is_silent and verdict.is_news(unstructured.child_object(run.observed.parent, "status")):
        yield RecordEvent(run.observed.parent, "Warning" if verdict.is_warning else "Normal", verdict.reason, verdict.message)
    choice = run.controller.inventory_storage
    fields = yield from run.store.prepare(run.observed, run.items, choice=choice, marks=run.rules.marks)
    if run.placement and any(fields.values()):
        fields = {**fields, "placement": run.placement}

    def mutate(component: JsonObject) -> JsonObject | None:
        status = status_of(component, run.stated, verdict, run.progress, now=run.rules.now)
        return with_status(component, {**status, **fields})

    written = yield from edit_parent(run.observed, ParentEdit(name="Status", mutate=mutate, subresource="status"))
    if written is not None:
        run.observed = run.observed.with_parent(written)
        yield from run.store.tidy(run.observed)
    return written


def verdict_of(run: ComponentRun) -> Verdict:
    """What a pass says of a component whose objects are not all ready."""
    failed = [each for key, each in run.waiting.items() if key in run.items and run.items[key].status == "Failed"]
    if failed:
        return Verdict(state="Error", reason="DependentFailed", message="; ".join(failed))
    return not_ready(run.progress, run.waiting.values(), now=run.rules.now, timeout_seconds=run.intervals.timeout)


def verdict_on(error: MetaloopError, run: ComponentRun) -> Verdict:
    """What an error says of a component. What ends by itself is only a delay."""
    if error.fault is Fault.CONFLICT:
        return not_ready(run.progress, (), now=run.rules.now, timeout_seconds=run.intervals.timeout)
    is_late = run.progress.is_timed_out(run.rules.now, run.intervals.timeout)
    if _is_retriable(error):
        return Verdict(state="Pending", reason=TIMEOUT if is_late else "Retrying", message=str(error))
    return Verdict(state="Error", reason=TIMEOUT if is_late else error.fault.reason, message=str(error))


def verdict_on_deletion(error: MetaloopError) -> Verdict:
    """What an error says of a component that is being deleted."""
    if _is_retriable(error):
        return Verdict(state="DeletionPending", reason="DeletionRetrying", message=str(error))
    return Verdict(state="Error", reason=error.fault.reason, message=str(error))


def _is_retriable(error: MetaloopError) -> bool:
    """Whether the component has not failed, and only has to wait."""
    return isinstance(error, Transient) or error.fault is Fault.REFERENCE_MISSING
