"""What would become of the objects of a component, wave by wave, if each wave became ready. Nothing is written.

A pass ends with the first wave that is not ready. A preview goes on: it shows what all passes together will do.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.identity import ObjectKey
from metaloop.reconciler.core.component.inventory import Item
from metaloop.reconciler.core.component.removal import Occasion, candidates, going, is_orphaned, removal_of
from metaloop.reconciler.core.component.target import Target
from metaloop.reconciler.core.component.waves import ADOPTED, STAGES, ObjectPlan, Rules, due_purges, planned, waves_of
from metaloop.reconciler.core.model import ApplyChild, ChildWrite, CreateChild, DeleteChild
from metaloop.reconciler.errors import NameTaken

Verb: TypeAlias = Literal["create", "update", "recreate", "adopt", "keep", "wait", "refuse", "purge", "delete", "orphan", "block"]

_DELETED: Final[Mapping[Occasion, str]] = {"apply": "it is no longer desired", "delete": "the component is deleted"}
_CREATED_LATER: Final = "its kind is not served yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedObject:
    """What would become of one object, and why."""

    verb: Verb
    key: ObjectKey
    api_version: str
    reason: str
    live: JsonObject | None = None
    """The object as it is now. None if it does not exist."""
    action: ChildWrite | DeleteChild | None = None
    """What would be written. None if nothing would be."""
    successor: JsonObject | None = None
    """What would be created in the place of a deleted object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedWave:
    """The objects of one wave, in their order."""

    title: str
    objects: tuple[PreviewedObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The waves in which a component is applied, and those in which objects are deleted."""

    waves: tuple[PreviewedWave, ...]
    obstacles: tuple[str, ...] = ()
    """Why nothing of this would happen now."""


# -- waves -------------------------------------------------------------------------------------------------------------


def previewed_waves(
    targets: Sequence[Target], items: Mapping[ObjectKey, Item], live: Mapping[ObjectKey, JsonObject], rules: Rules
) -> Iterator[PreviewedWave]:
    """What applying the targets would do, wave by wave."""
    waves, applied = [*waves_of(targets, rules.managed_types)], list[Target]()
    for wave in waves:
        members = [target for stage in STAGES for target in wave.stages[stage]]
        applied += members
        objects = [_applied(target, items[target.key], live.get(target.key), rules) for target in members]
        due = due_purges(applied, items, wave=wave.order, is_last=wave is waves[-1])
        yield PreviewedWave(title=f"wave {wave.order}", objects=(*objects, *_purged(applied, due, live)))
        applied = [target for target in applied if target.key not in due]


def _applied(target: Target, item: Item, live: JsonObject | None, rules: Rules) -> PreviewedObject:
    try:
        plan = planned(target, item, live, rules)
    except NameTaken as error:
        return _previewed("refuse", item, reason=str(error), live=live)
    if plan.action is not None:
        return _written(plan, plan.action, live, rules)
    if item.phase in {"ScheduledForCompletion", "Completing"}:
        return _previewed("wait", item, reason="it is purged", live=live)
    if live is None and item.phase != "Completed":
        return _previewed("create", item, reason=plan.message or _CREATED_LATER)
    if plan.is_ready:
        return _previewed("keep", item, reason="it is as desired" if live is not None else "it was purged", live=live)
    return _previewed("wait", item, reason=plan.message or plan.item.phase, live=live)


def _written(plan: ObjectPlan, action: ChildWrite | DeleteChild, live: JsonObject | None, rules: Rules) -> PreviewedObject:
    successor = rules.marks.on(plan.target.obj, digest=plan.target.digest) if isinstance(action, DeleteChild) else None
    return PreviewedObject(
        verb=_verb(action),
        key=plan.target.key,
        api_version=plan.item.api_version,
        reason=action.reason,
        live=live,
        action=action,
        successor=successor,
    )


def _verb(action: ChildWrite | DeleteChild) -> Verb:
    match action:
        case DeleteChild():
            return "recreate"
        case CreateChild() | ApplyChild(observed=None):
            return "create"
        case _:
            return "adopt" if action.reason == ADOPTED else "update"


def _purged(applied: Iterable[Target], due: Sequence[ObjectKey], live: Mapping[ObjectKey, JsonObject]) -> Iterator[PreviewedObject]:
    for target in applied:
        if target.key in due:
            reason = f"its purge order is {target.settings.purge_order}"
            api_version = unstructured.api_version(target.obj)
            yield PreviewedObject(verb="purge", key=target.key, api_version=api_version, reason=reason, live=live.get(target.key))


# -- removal -----------------------------------------------------------------------------------------------------------


def previewed_removal(
    items: Mapping[ObjectKey, Item],
    live: Mapping[ObjectKey, JsonObject],
    rules: Rules,
    *,
    occasion: Occasion,
    users: Mapping[ObjectKey, Sequence[str]],
) -> Iterator[PreviewedWave]:
    """What deleting what has to go would do, wave by wave. `users` has the instances of others that need a type."""
    left, waves = dict(items), dict[int, list[PreviewedObject]]()
    while round_ := candidates(left, occasion, rules.managed_types):
        for item in round_:
            waves.setdefault(item.delete_order, []).append(_removed(item, live, rules, occasion, users.get(item.key, ())))
            del left[item.key]
    for item in going(left, occasion):
        waves.setdefault(item.delete_order, []).append(_previewed("wait", item, reason="others have to go first", live=live.get(item.key)))
    for order, objects in sorted(waves.items()):
        yield PreviewedWave(title=f"deletion wave {order}", objects=tuple(objects))


def _removed(item: Item, live: Mapping[ObjectKey, JsonObject], rules: Rules, occasion: Occasion, users: Sequence[str]) -> PreviewedObject:
    obj = live.get(item.key)
    removal = removal_of([item], live, rules.marks, occasion=occasion)
    if removal.pending:
        return _previewed("wait", item, reason="it is being deleted", live=obj)
    if removal.delete and users:
        return _previewed("block", item, reason=f"needed by {', '.join(users)}", live=obj)
    if removal.delete:
        return _previewed("delete", item, reason=_DELETED[occasion], live=obj)
    if obj is None:
        return _previewed("keep", item, reason="it is gone already")
    reason = f"its delete policy is {item.delete}" if is_orphaned(item, occasion) else f"it is {rules.marks.ownership(obj)}"
    return _previewed("orphan", item, reason=reason, live=obj)


def _previewed(verb: Verb, item: Item, *, reason: str, live: JsonObject | None = None) -> PreviewedObject:
    return PreviewedObject(verb=verb, key=item.key, api_version=item.api_version, reason=reason, live=live)
