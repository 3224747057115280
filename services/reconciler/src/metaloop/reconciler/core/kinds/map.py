"""MapController: for each input of a parent, its hook says what outputs there are.

An input and its outputs are a part of the parent's work, and synced on their own:

    paused    is the parent paused?               if so, its own unit of work says it once, and nothing else happens
    selector  which inputs does it select?        ends with an invalid parent: nobody knows then which inputs are gone
    map       there is an input                   which outputs does the hook desire for it?
    tombstone there are outputs and no input      which of them does the hook keep? none without a hook
    outputs   delete, then create and update      guards hold back excessive deletions, as for any child
    status    of the parent itself, without hook  what the watcher counted

The controllerRef of an output names the parent. Annotations name the controller and the map key; these count. A label
with the map key is for users, to select by.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, cast

from metaloop.common.api import MAP_CONTROLLER_ANNOTATION, MAP_KEY
from metaloop.common.api.hook import Hook, HookKeys
from metaloop.common.api.map import KEYS, MapController, input_selector
from metaloop.common.json import JsonObject, JsonValue, dumps
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.reconciler.core.children.plan import NO_LONGER_DESIRED, plan_of
from metaloop.reconciler.core.hooks.answer import sync_answer
from metaloop.reconciler.core.hooks.request import object_maps
from metaloop.reconciler.core.hooks.validation import desired_children
from metaloop.reconciler.core.kinds.map_status import with_counts
from metaloop.reconciler.core.model import Answer, ChildGroup, DeleteChild, Observed, ParentEdit, Plan
from metaloop.reconciler.core.parent.pause import is_sync_paused
from metaloop.reconciler.core.pause_announcement import announce_pause
from metaloop.reconciler.core.steps import (
    Forget,
    Learn,
    PauseAnnounced,
    RecordEvent,
    ReportRivals,
    ReportUnknownKeys,
    Resync,
    Steps,
    TombstoneEditsIgnored,
    call_hook,
    choose_apply_strategy,
    edit_parent,
    recall,
    write_children,
)
from metaloop.reconciler.errors import NameTaken, WritesFailed


def sync_map(observed: Observed, now: datetime) -> Steps[None]:
    """Bring one part of a parent to the state that the hooks desire, or the status of the parent up to date."""
    if not _is_selected(observed) or observed.is_deleting:
        return
    if is_sync_paused(observed):
        if not observed.part:
            yield from announce_pause(observed, now, owns_status=True)
        return
    input_selector(observed.parent)
    if observed.part:
        yield from _sync_part(observed)
        return
    yield Forget(PauseAnnounced(observed.uid))
    yield from _write_status(observed, now)


def _is_selected(observed: Observed) -> bool:
    return observed.controller.parents[0].labels.matches(unstructured.labels(observed.parent))


def _controller(observed: Observed) -> MapController:
    return cast("MapController", observed.controller)


# -- the parent itself -------------------------------------------------------------------------------------------------


def _write_status(observed: Observed, now: datetime) -> Steps[None]:
    if observed.summary is not None:
        mutate = partial(with_counts, summary=observed.summary, at=now.strftime("%Y-%m-%dT%H:%M:%SZ"))
        yield from edit_parent(observed, ParentEdit(name="Status", mutate=mutate, subresource="status"))


# -- a part ------------------------------------------------------------------------------------------------------------


def _sync_part(observed: Observed) -> Steps[None]:
    outputs = tuple([group.with_objects(_own(group.objects, observed)) for group in observed.groups])
    source = next((obj for group in observed.inputs for obj in group.objects), None)
    if source is not None:
        plan = yield from _mapped(observed, source, outputs)
    else:
        plan = yield from _detached(observed, outputs)
    if not plan:
        return
    effects = yield from write_children(observed, plan, outputs)
    if effects.failures:
        rivals = {failure.error.rival for failure in effects.failures if isinstance(failure.error, NameTaken)} - {""}
        yield ReportRivals(tuple(sorted(rivals)))
        raise WritesFailed(effects.failures)


def _own(candidates: Iterable[JsonObject], observed: Observed) -> tuple[JsonObject, ...]:
    """The outputs of this part among the objects that the watcher shows."""
    return tuple([each for each in candidates if _is_own(each, observed)])


def _is_own(candidate: JsonObject, observed: Observed) -> bool:
    owner, annotations = controller_ref(candidate), unstructured.annotations(candidate)
    ours = (observed.controller.name, observed.part)
    return (
        owner is not None and owner.uid == observed.uid and (annotations.get(MAP_CONTROLLER_ANNOTATION), annotations.get(MAP_KEY)) == ours
    )


def _mapped(observed: Observed, source: JsonObject, outputs: tuple[ChildGroup, ...]) -> Steps[Plan]:
    """What to do so that the outputs are as the map hook desires."""
    strategy = yield from choose_apply_strategy(observed)
    answer = yield from _ask(observed, _controller(observed).map_hook, outputs, input=source)
    desired = desired_children(answer, observed, variant=_FORMAT)
    return plan_of(observed, outputs, desired, strategy=strategy)


def _detached(observed: Observed, outputs: tuple[ChildGroup, ...]) -> Steps[Plan]:
    """What to do about outputs whose input is gone: delete those that the tombstone hook does not keep."""
    hook = _controller(observed).tombstone_hook
    living = [(group, obj) for group in outputs for obj in group.objects if not unstructured.is_deleting(obj)]
    kept: set[_Identity] = set()
    if hook is not None and living:
        answer = yield from _ask(observed, hook, outputs)
        kept = {_identity(obj, observed) for obj in answer.children}
        yield from _announce_edits(observed, answer.children, outputs)
    return Plan(
        deletions=tuple(
            [
                DeleteChild(info=group.info, obj=obj, reason=NO_LONGER_DESIRED)
                for group, obj in living
                if _identity(obj, observed) not in kept
            ]
        )
    )


def _ask(observed: Observed, hook: Hook, outputs: tuple[ChildGroup, ...], **about: JsonValue) -> Steps[Answer]:
    """The answer of a hook about one part. The resync that it asks for happens even if the rest of the sync fails."""
    request = {
        "controller": observed.controller.shown,
        "parent": observed.parent,
        "mapKey": observed.part,
        **about,
        "outputs": object_maps(outputs, version=hook.version, parent_namespace=observed.namespace),
    }
    [body] = yield from call_hook(observed, hook, {observed.part: dumps(request)})
    answer = sync_answer(body, is_strict=hook.strict, keys=KEYS)
    if answer.resync_after_seconds is not None:
        yield Resync(answer.resync_after_seconds)
    if answer.unknown_keys:
        yield ReportUnknownKeys(answer.unknown_keys)
    return answer


# -- outputs whose input is gone ---------------------------------------------------------------------------------------

_Identity = tuple[str, str, str, str]


def _identity(obj: JsonObject, observed: Observed) -> _Identity:
    """The apiVersion, kind, namespace and name of an object, which an answer may leave in its parent's namespace."""
    namespace = unstructured.namespace(obj) or observed.namespace
    return unstructured.api_version(obj), unstructured.kind(obj), namespace, unstructured.name(obj)


def _announce_edits(observed: Observed, answered: Sequence[JsonObject], outputs: tuple[ChildGroup, ...]) -> Steps[None]:
    """Announce once that a tombstone hook can't change or create outputs."""
    present = {_identity(obj, observed): obj for group in outputs for obj in group.objects}
    edited = [each for each in answered if not _is_part_of(each, present.get(_identity(each, observed)))]
    if not edited or (yield from recall(TombstoneEditsIgnored(observed.uid))):
        return
    yield Learn(TombstoneEditsIgnored(observed.uid))
    message = f"the tombstone hook can only keep outputs or let them go: its changes to {unstructured.describe(edited[0])} are ignored"
    yield RecordEvent(observed.parent, "Warning", "TombstoneEditsIgnored", message)


def _is_part_of(stated: JsonValue, present: JsonValue) -> bool:
    """Whether everything that is stated is so at present."""
    if isinstance(stated, dict) and isinstance(present, dict):
        return all(key in present and _is_part_of(value, present[key]) for key, value in stated.items())
    return stated == present


# -- how outputs are marked --------------------------------------------------------------------------------------------


def _with_tracking(child: JsonObject, observed: Observed) -> JsonObject:
    metadata = unstructured.metadata(child)
    labels, annotations = unstructured.child_object(metadata, "labels"), unstructured.child_object(metadata, "annotations")
    marks: Mapping[str, str] = {MAP_CONTROLLER_ANNOTATION: observed.controller.name, MAP_KEY: observed.part}
    marked: JsonObject = {"labels": {**labels, MAP_KEY: observed.part}, "annotations": {**annotations, **marks}}
    return {**child, "metadata": {**metadata, **marked}}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Format:
    """How answers name their outputs, and how outputs are recognized."""

    keys: HookKeys
    with_tracking: Callable[[JsonObject, Observed], JsonObject]


_FORMAT: Final = _Format(keys=KEYS, with_tracking=_with_tracking)
