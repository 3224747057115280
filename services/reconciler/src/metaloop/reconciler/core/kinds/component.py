"""ComponentController: deploys the objects of a component in order, and removes them in order.

A pass goes through these stages. It never waits: what is not ready yet is looked at again, as soon as it changes.

    paused         is it paused?                  if so, that is said once, and nothing else happens
    suspended      does it say so itself?         its status says so, and nothing else happens
    finalizer      add ours                       nothing is deployed before
    references     what does it refer to?         ends with what is missing, and goes on once it is there
    postRead       call the hook
    preReconcile   call the hook
    generate       which objects does it have?    ends with an invalid answer: nothing is touched
    inventory      which are new, which go?       persisted before anything is created
    waves          apply them one after another   ends with the first wave that is not ready
    removal        delete what is not desired     once all waves are ready, in the order of deletion
    postReconcile  call the hook                  once everything is as desired
    status         how far it is                  also if anything failed

A component that is being deleted goes through the stages of `component_deletion`.
"""

from dataclasses import replace
from datetime import datetime
from functools import partial
from math import inf
from typing import Final

from metaloop.common.api.component import is_suspended, stated_intervals, stated_namespace, stated_policies, stated_user
from metaloop.common.api.references import references_of
from metaloop.common.errors import InvalidSpec, MetaloopError
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.cluster import KindName
from metaloop.reconciler.core.component.digest import component_digest
from metaloop.reconciler.core.component.identity import Marks
from metaloop.reconciler.core.component.inventory import managed_types_in, scheduled
from metaloop.reconciler.core.component.progress import Verdict, next_look_seconds, progress_of, stored_progress
from metaloop.reconciler.core.component.settings import component_policies
from metaloop.reconciler.core.component.storage import stores
from metaloop.reconciler.core.component.target import Placement, Target, targets_of
from metaloop.reconciler.core.component.validation import require_consistent
from metaloop.reconciler.core.component.waves import Rules, seconds_to_reapply
from metaloop.reconciler.core.kinds.component_deletion import delete
from metaloop.reconciler.core.kinds.component_hooks import call_lifecycle_hook, generate
from metaloop.reconciler.core.kinds.component_run import ComponentRun
from metaloop.reconciler.core.kinds.component_status import end_pass, fail_pass, verdict_of, verdict_on, write_status
from metaloop.reconciler.core.model import Answer, Observed, ParentEdit
from metaloop.reconciler.core.parent.pause import is_sync_paused
from metaloop.reconciler.core.pause_announcement import announce_pause
from metaloop.reconciler.core.steps import Forget, PauseAnnounced, Resync, Steps, edit_parent

_LEAST_SECONDS: Final = 1.0
"""A component at rest is not looked at sooner, however short its intervals are."""
_READY: Final = Verdict(state="Ready", reason="Ready", message="all objects are ready")
_SUSPENDED: Final = Verdict(state="Pending", reason="Suspended", message="it says itself that nothing is to be done")
_ABOUT_TO_APPLY: Final = Verdict(state="Processing", reason="Processing", message="its objects are about to be applied")


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
            run = run_of(observed, now)
            run.progress = run.progress.ready()
            yield from delete(run)
        return
    finalizer = observed.controller.finalizer
    edited = yield from edit_parent(observed, ParentEdit(name="Finalizer", mutate=partial(_with_finalizer, finalizer=finalizer)))
    if edited is not None:
        yield from _apply(run_of(observed.with_parent(edited), now))


def _is_selected(observed: Observed) -> bool:
    return observed.controller.parents[0].labels.matches(unstructured.labels(observed.parent))


def run_of(observed: Observed, now: datetime) -> ComponentRun:
    """A pass that knows nothing yet but what the component's status says."""
    status = unstructured.child_object(observed.parent, "status")
    rules = Rules(marks=Marks(prefix="", owner_id=""), now=now)
    run = ComponentRun(observed=observed, rules=rules, progress=stored_progress(status))
    run.former = status
    run.intervals = run.controller.intervals
    run.is_silent = unstructured.annotations(observed.parent).get(f"{run.controller.prefix}/disable-events") == "true"
    return run


def _with_finalizer(component: JsonObject, *, finalizer: str) -> JsonObject | None:
    present = unstructured.finalizers(component)
    if finalizer in present or unstructured.is_deleting(component):
        return None
    return {**component, "metadata": {**unstructured.metadata(component), "finalizers": [*present, finalizer]}}


def _apply(run: ComponentRun) -> Steps[None]:
    """Deploy a component, and write its status however that ends."""
    try:
        verdict = yield from _applied(run)
    except MetaloopError as error:
        yield from fail_pass(run, verdict_on(error, run))
        raise
    yield from end_pass(run, verdict)


def _applied(run: ComponentRun) -> Steps[Verdict]:
    """Go through the stages. Returns what that says of the component."""
    component = run.observed.parent
    if is_suspended(run.controller, component):
        run.progress = run.progress.ready()
        return _SUSPENDED
    run.intervals = stated_intervals(run.controller, component)
    run.acting_as = stated_user(run.controller, component)
    yield from run.load()
    yield from read_references(run)
    yield from call_lifecycle_hook(run, "postRead")
    yield from call_lifecycle_hook(run, "preReconcile")
    answer = yield from generate(run)
    yield from _deploy(run, answer)
    if run.waiting:
        run.progress = run.progress.processing(run.rules.now)
        yield Resync(next_look_seconds(run.progress.seconds(run.rules.now)))
        return verdict_of(run)
    yield from call_lifecycle_hook(run, "postReconcile")
    run.progress = run.progress.ready()
    yield Resync(min(run.intervals.requeue, max(run.reapply_seconds, _LEAST_SECONDS)))
    return _READY


def read_references(run: ComponentRun) -> Steps[None]:
    """Read what the component refers to. Its digest is known then. Raises ReferenceMissing."""
    component = run.observed.parent
    yield from run.resolve(references_of(component, run.controller.references))
    digest = component_digest(component, references={each.reference.path: each.digest for each in run.contents})
    run.progress = progress_of(unstructured.child_object(component, "status"), digest)


def _deploy(run: ComponentRun, answer: Answer) -> Steps[None]:
    """Apply what the hook desires, and delete what it no longer desires. `run` says then what is waited for."""
    former = set(run.items)
    targets = yield from schedule(run, answer)
    if run.items.keys() - former:
        yield from _persist(run)
    yield from run.look(targets)
    yield from run.apply(targets)
    if not run.waiting:
        yield from run.remove("apply")
    run.reapply_seconds = min((seconds_to_reapply(target, run.items[target.key], run.rules.now) for target in targets), default=inf)


def schedule(run: ComponentRun, answer: Answer) -> Steps[tuple[Target, ...]]:
    """The targets that the hook desires. `run` has their items then.

    Raises InvalidAnswer or InvalidParent: then nothing is touched.
    """
    targets = yield from _prepare(run, answer)
    items = scheduled(run.items, targets)
    require_consistent(items)
    run.items = items
    run.rules = replace(run.rules, managed_types=(*managed_types_in(items), *run.additional_types()))
    return targets


def _prepare(run: ComponentRun, answer: Answer) -> Steps[tuple[Target, ...]]:
    """The targets that the hook desires. Raises InvalidAnswer or InvalidParent: then nothing is touched."""
    controller, component = run.controller, run.observed.parent
    field = (controller.parent_fields.policies or "").removeprefix(".")
    default = replace(controller.policies, reapply_seconds=run.intervals.reapply)
    policies = component_policies(default, stated_policies(controller, component), field=field)
    asked = {KindName(unstructured.api_version(each), unstructured.kind(each)) for each in answer.children}
    marks = yield from run.describe(asked)
    run.rules = Rules(marks=marks, now=run.rules.now, drift_detection=policies.drift_detection)
    run.creates_namespaces = policies.missing_namespaces == "Create"
    namespace = stated_namespace(controller, component)
    run.require_placement(namespace)
    placement = Placement(namespace=namespace, marks=marks, policies=policies, digest=run.progress.digest)
    return targets_of(answer.children, placement, kinds=run.cluster)


def _persist(run: ComponentRun) -> Steps[None]:
    """Write the inventory. Raises InvalidSpec if the kind of the component does not store it."""
    written = yield from write_status(run, _ABOUT_TO_APPLY)
    if written is not None and not stores(unstructured.child_object(written, "status"), run.store.last):
        [field] = run.store.last.fields
        raise InvalidSpec("spec.parentResource", f"{run.observed.info.id} does not store status.{field}: its schema drops it")
