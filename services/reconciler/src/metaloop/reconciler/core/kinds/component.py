"""ComponentController: deploys the objects of a component in order, and removes them in order.

A pass goes through these stages. It never waits: what is not ready yet is looked at again, as soon as it changes.

    paused     is it paused?                  if so, that is said once, and nothing else happens
    suspended  does it say so itself?         its status says so, and nothing else happens
    finalizer  add ours                       nothing is deployed before
    generate   which objects does it have?    ends with an invalid answer: nothing is touched
    inventory  which are new, which go?       persisted before anything is created
    waves      apply them one after another   ends with the first wave that is not ready
    removal    delete what is not desired     once all waves are ready, in the order of deletion
    status     how far it is                  also if anything failed

A component that is being deleted goes through other stages:

    gate       do others need its types?      if so, nothing is deleted
    removal    delete everything              in the order of deletion
    finalizer  remove ours                    once nothing is left
"""

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final, cast

from metaloop.common.api.component import KEYS, ComponentController, is_suspended, stated_namespace, stated_policies
from metaloop.common.errors import InvalidSpec, MetaloopError, Transient
from metaloop.common.faults import Fault
from metaloop.common.json import JsonObject, dumps
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.cluster import KindName
from metaloop.reconciler.core.component.digest import component_digest
from metaloop.reconciler.core.component.identity import Marks, owner_id
from metaloop.reconciler.core.component.inventory import inventory_in, managed_types_in, scheduled
from metaloop.reconciler.core.component.managed_types import ANY, ManagedType
from metaloop.reconciler.core.component.progress import (
    Progress,
    Verdict,
    next_look_seconds,
    not_ready,
    progress_of,
    status_of,
    with_inventory,
)
from metaloop.reconciler.core.component.removal import is_orphaned
from metaloop.reconciler.core.component.settings import component_policies
from metaloop.reconciler.core.component.target import Placement, Target, targets_of
from metaloop.reconciler.core.component.validation import require_consistent
from metaloop.reconciler.core.component.waves import Rules
from metaloop.reconciler.core.hooks.answer import sync_answer
from metaloop.reconciler.core.kinds.component_run import ComponentRun
from metaloop.reconciler.core.model import Answer, Observed, ParentEdit
from metaloop.reconciler.core.parent.edits import with_status
from metaloop.reconciler.core.parent.finalizer import without_finalizer
from metaloop.reconciler.core.parent.pause import is_sync_paused
from metaloop.reconciler.core.pause_announcement import announce_pause
from metaloop.reconciler.core.steps import (
    Forget,
    PauseAnnounced,
    RecordEvent,
    ReportUnknownKeys,
    Resync,
    Steps,
    call_hook,
    describe_cluster,
    edit_parent,
    find_foreign,
)

_READY: Final = Verdict(state="Ready", reason="Ready", message="all objects are ready")
_SUSPENDED: Final = Verdict(state="Pending", reason="Suspended", message="it says itself that nothing is to be done")
_DELETING: Final = Verdict(state="Deleting", reason="DeletionProcessing", message="its objects are being deleted")
_BLOCKED_LOOK_SECONDS: Final = 10.0


def sync_component(observed: Observed, now: datetime) -> Steps[None]:
    """Bring a component one pass further. Raises the error that prevents it."""
    if not _is_selected(observed) and not observed.is_deleting:
        return
    if is_sync_paused(observed):
        yield from announce_pause(observed, now, owns_status=True)
        return
    yield Forget(PauseAnnounced(observed.uid))
    if observed.is_deleting:
        if observed.has_finalizer:
            yield from _delete(observed, now)
        return
    edited = yield from edit_parent(
        observed, ParentEdit(name="Finalizer", mutate=partial(_with_finalizer, finalizer=_controller(observed).finalizer))
    )
    if edited is not None:
        yield from _apply(observed.with_parent(edited), now)


def _is_selected(observed: Observed) -> bool:
    return observed.controller.parents[0].labels.matches(unstructured.labels(observed.parent))


def _controller(observed: Observed) -> ComponentController:
    return cast("ComponentController", observed.controller)


def _with_finalizer(component: JsonObject, *, finalizer: str) -> JsonObject | None:
    present = unstructured.finalizers(component)
    if finalizer in present or unstructured.is_deleting(component):
        return None
    return {**component, "metadata": {**unstructured.metadata(component), "finalizers": [*present, finalizer]}}


# -- apply -------------------------------------------------------------------------------------------------------------


def _apply(observed: Observed, now: datetime) -> Steps[None]:
    """Deploy a component, and write its status however that ends."""
    controller, component = _controller(observed), observed.parent
    status = unstructured.child_object(component, "status")
    progress = progress_of(status, component_digest(component, references={}))
    run = ComponentRun(observed=observed, rules=_no_rules(now), items=inventory_in(status))
    if is_suspended(controller, component):
        yield from _write_status(run, _SUSPENDED, progress.ready(), stated=None)
        return
    stated: JsonObject | None = None
    try:
        answer = yield from _generate(observed, progress)
        stated = answer.status or {}
        yield from _deploy(run, answer, progress)
    except MetaloopError as error:
        yield from _write_status(run, _verdict_on(error, progress, run), progress, stated=stated)
        raise
    if run.waiting:
        progress = progress.processing(now)
        yield Resync(next_look_seconds(progress.seconds(now)))
        verdict = _unready(run, progress)
    else:
        progress, verdict = progress.ready(), _READY
        yield Resync(controller.requeue_seconds)
    yield from _write_status(run, verdict, progress, stated=stated)


def _generate(observed: Observed, progress: Progress) -> Steps[Answer]:
    """The answer of the hook. The resync that it asks for happens even if the rest of the pass fails."""
    controller, component = _controller(observed), observed.parent
    request = {
        "controller": controller.shown,
        "parent": component,
        "namespace": stated_namespace(controller, component),
        "name": observed.name,
        "digest": progress.digest,
        "revision": progress.revision,
    }
    [body] = yield from call_hook(observed, controller.generate, {"": dumps(request)})
    answer = sync_answer(body, is_strict=controller.generate.strict, keys=KEYS)
    if answer.resync_after_seconds is not None:
        yield Resync(answer.resync_after_seconds)
    if answer.unknown_keys:
        yield ReportUnknownKeys(answer.unknown_keys)
    return answer


def _deploy(run: ComponentRun, answer: Answer, progress: Progress) -> Steps[None]:
    """Apply what the hook desires, and delete what it no longer desires. `run` says then what is waited for."""
    targets = yield from _prepare(run, answer, progress)
    former = set(run.items)
    items = scheduled(run.items, targets)
    require_consistent(items)
    run.items = items
    types = (*managed_types_in(items), *_additional_types(run.observed))
    run.rules = replace(run.rules, managed_types=types)
    if items.keys() - former:
        yield from _persist(run, progress)
    yield from run.look(targets)
    yield from run.apply(targets)
    if not run.waiting:
        yield from run.remove("apply")


def _prepare(run: ComponentRun, answer: Answer, progress: Progress) -> Steps[tuple[Target, ...]]:
    """The targets that the hook desires. Raises InvalidAnswer or InvalidParent: then nothing is touched."""
    observed, controller = run.observed, _controller(run.observed)
    field = (controller.parent_fields.policies or "").removeprefix(".")
    policies = component_policies(controller.policies, stated_policies(controller, observed.parent), field=field)
    asked = {KindName(unstructured.api_version(each), unstructured.kind(each)) for each in answer.children}
    run.cluster = yield from describe_cluster({*asked, *run.kinds()})
    marks = Marks(prefix=controller.prefix, owner_id=owner_id(run.cluster.uid, observed.parent))
    run.rules = Rules(marks=marks, now=run.rules.now, drift_detection=policies.drift_detection)
    run.creates_namespaces = policies.missing_namespaces == "Create"
    namespace = stated_namespace(controller, observed.parent)
    placement = Placement(namespace=namespace, marks=marks, policies=policies, digest=progress.digest)
    return targets_of(answer.children, placement, kinds=run.cluster)


def _persist(run: ComponentRun, progress: Progress) -> Steps[None]:
    """Write the inventory. Raises InvalidSpec if the kind of the component does not store it."""
    verdict = Verdict(state="Processing", reason="Processing", message="its objects are about to be applied")
    written = yield from _write_status(run, verdict, progress, stated=None)
    if written is not None and run.items and not inventory_in(unstructured.child_object(written, "status")):
        raise InvalidSpec("spec.parentResource", f"{run.observed.info.id} does not store status.inventory: its schema drops it")


def _unready(run: ComponentRun, progress: Progress) -> Verdict:
    failed = [each for key, each in run.waiting.items() if key in run.items and run.items[key].status == "Failed"]
    if failed:
        return Verdict(state="Error", reason="DependentFailed", message="; ".join(failed))
    return not_ready(progress, run.waiting.values(), now=run.rules.now, timeout_seconds=_controller(run.observed).timeout_seconds)


def _verdict_on(error: MetaloopError, progress: Progress, run: ComponentRun) -> Verdict:
    """What an error says of a component. What ends by itself is only a delay."""
    if error.fault is Fault.CONFLICT:
        return not_ready(progress, (), now=run.rules.now, timeout_seconds=_controller(run.observed).timeout_seconds)
    is_late = progress.is_timed_out(run.rules.now, _controller(run.observed).timeout_seconds)
    if isinstance(error, Transient):
        return Verdict(state="Pending", reason="Timeout" if is_late else "Retrying", message=str(error))
    return Verdict(state="Error", reason="Timeout" if is_late else error.fault.reason, message=str(error))


def _additional_types(observed: Observed) -> tuple[ManagedType, ...]:
    return tuple([ManagedType(each.group, ANY, each.kind) for each in _controller(observed).managed_types])


# -- delete ------------------------------------------------------------------------------------------------------------


def _delete(observed: Observed, now: datetime) -> Steps[None]:
    """Delete the objects of a component, and then our finalizer."""
    status = unstructured.child_object(observed.parent, "status")
    progress = Progress(digest=unstructured.text(status, "processingDigest"), revision=unstructured.integer(status, "revision"))
    run = ComponentRun(observed=observed, rules=_no_rules(now), items=inventory_in(status))
    try:
        blockers = yield from _blockers(run)
        if not blockers:
            yield from run.look(())
            yield from run.remove("delete")
    except MetaloopError as error:
        yield from _write_status(run, _verdict_on_deletion(error), progress, stated=None)
        raise
    if blockers:
        yield from _block(run, blockers, progress)
    elif run.items:
        yield Resync(1.0)
        yield from _write_status(run, _DELETING, progress, stated=None)
    else:
        mutate = partial(without_finalizer, controller=observed.controller)
        yield from edit_parent(run.observed, ParentEdit(name="Finalizer", mutate=mutate))


def _blockers(run: ComponentRun) -> Steps[list[str]]:
    """What stands against the deletion: instances that others made of managed types, and finalizers of others."""
    observed, controller = run.observed, _controller(run.observed)
    run.cluster = yield from describe_cluster(run.kinds())
    marks = Marks(prefix=controller.prefix, owner_id=owner_id(run.cluster.uid, observed.parent))
    types = (*managed_types_in(run.items), *_additional_types(observed))
    run.rules = Rules(marks=marks, now=run.rules.now, managed_types=types)
    others = [each for each in unstructured.finalizers(observed.parent) if each != controller.finalizer]
    if others:
        return [f"finalizer {each}" for each in others]
    deleted = any(not is_orphaned(item, "delete") for item in run.items.values())
    gated = types if deleted else _additional_types(observed)
    return (yield from find_foreign(gated, label=marks.owner_key, value=marks.owner_label))


def _block(run: ComponentRun, blockers: list[str], progress: Progress) -> Steps[None]:
    message = f"deletion is blocked by {', '.join(blockers)}"
    yield Resync(_BLOCKED_LOOK_SECONDS)
    yield RecordEvent(run.observed.parent, "Warning", "DeletionBlocked", message)
    yield from _write_status(run, Verdict(state="Deleting", reason="DeletionBlocked", message=message), progress, stated=None)


def _verdict_on_deletion(error: MetaloopError) -> Verdict:
    if isinstance(error, Transient):
        return Verdict(state="DeletionPending", reason="DeletionRetrying", message=str(error))
    return Verdict(state="Error", reason=error.fault.reason, message=str(error))


# -- status ------------------------------------------------------------------------------------------------------------


def _no_rules(now: datetime) -> Rules:
    return Rules(marks=Marks(prefix="", owner_id=""), now=now)


def _write_status(run: ComponentRun, verdict: Verdict, progress: Progress, *, stated: JsonObject | None) -> Steps[JsonObject | None]:
    """Write the status with the inventory. Returns the component as it is now; None if it is gone."""

    def mutate(component: JsonObject) -> JsonObject | None:
        status = status_of(component, stated, verdict, progress, now=run.rules.now)
        return with_status(component, with_inventory(status, run.items))

    written = yield from edit_parent(run.observed, ParentEdit(name="Status", mutate=mutate, subresource="status"))
    if written is not None:
        run.observed = run.observed.with_parent(written)
    return written
