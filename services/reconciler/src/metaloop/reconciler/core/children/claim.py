"""ControllerRef claims: for each candidate child, `Keep | Adopt | Release | Ignore`.

The three laws of controllerRef, as any controller must follow them so that none fights another:

    1. Take over an orphan that the selector matches, unless it or the parent is being deleted.
    2. Give up a child that the selector matches no longer, unless the parent is being deleted: its children are the garbage collector's then.
    3. Leave an object that another controller owns alone, whatever its labels. So is what a decorator attached to the parent: it has the same owner.

An owner is who its UID says: a namesake of a former owner owns nothing. Before the first adoption somebody must look at the parent live (its deletion may
not have reached the cache); that is the shell's to do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from metaloop.common.api import DECORATOR_ANNOTATION
from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref, owner_references, reference_to
from metaloop.common.objects.resource import ResourceId
from metaloop.reconciler.core.model import Adopt, ChildGroup, ClaimAction, Observed, Release
from metaloop.reconciler.errors import NameTaken


@dataclass(frozen=True, slots=True)
class Keep:
    """It is this parent's child, and stays so."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """It is not this parent's, and nothing is to be done about it."""


KEEP, IGNORE = Keep(), Ignore()
Claim: TypeAlias = Keep | Adopt | Release | Ignore


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """What became of all candidates of a parent: its children, group by group, and what must be written to make them so.

    Orphans to adopt are in no group yet: whoever carries the adoption out has the object as the API server then knows it.
    """

    groups: tuple[ChildGroup, ...]
    actions: tuple[ClaimAction, ...]


def claims_of(observed: Observed) -> Claims:
    """The claim on every candidate of a parent."""
    groups: list[ChildGroup] = []
    actions: list[ClaimAction] = []
    for group in observed.groups:
        kept: list[JsonObject] = []
        for candidate in group.objects:
            match claim_of(candidate, group=group, observed=observed):
                case Keep():
                    kept.append(candidate)
                case Adopt() | Release() as action:
                    actions.append(action)
                case Ignore():
                    pass
        groups.append(with_objects(group, tuple(kept)))
    return Claims(groups=tuple(groups), actions=tuple(actions))


def claim_of(candidate: JsonObject, *, group: ChildGroup, observed: Observed) -> Claim:
    """The claim on one candidate, by the three laws."""
    owner = controller_ref(candidate)
    if DECORATOR_ANNOTATION in unstructured.annotations(candidate) or (owner is not None and owner.uid != observed.uid):
        return IGNORE
    is_match = _is_selected(candidate, observed)
    if owner is None:
        if not is_match or observed.is_deleting or unstructured.is_deleting(candidate):
            return IGNORE
        return Adopt(info=group.info, obj=_controlled(candidate, by=observed.parent), reason="an orphan that the parent's selector matches")
    if is_match:
        return KEEP
    if observed.is_deleting:
        return IGNORE
    return Release(info=group.info, obj=_disowned(candidate, by=observed.uid), reason="the parent's selector no longer matches its labels")


def name_conflict(holder: JsonObject, *, wanted: JsonObject, observed: Observed) -> Conflict | NameTaken:
    """Why a desired child could not be created, given who holds its name: a Conflict where looking again mends it, NameTaken where the holder isn't ours to touch."""
    owner = controller_ref(holder)
    if unstructured.is_deleting(holder):
        return Conflict("an older one of this name is still being deleted")
    if owner is None:
        if _is_selected(holder, observed):
            return Conflict("an orphan of this name is there, and not yet in the watcher's cache")
        return NameTaken("the name is taken by an object that no controller owns, and that this one may not adopt")
    if owner.uid != observed.uid:
        return NameTaken(f"the name is taken by an object that {owner.kind} {owner.name} controls")
    decorator = unstructured.annotations(holder).get(DECORATOR_ANNOTATION)
    if decorator != unstructured.annotations(wanted).get(DECORATOR_ANNOTATION):
        return NameTaken(
            f"the name is taken by what {f'the decorator {decorator}' if decorator else 'another controller'} attached to the parent"
        )
    return Conflict("it is there already, and not yet in the watcher's cache")


def _is_selected(candidate: JsonObject, observed: Observed) -> bool:
    return observed.selector is not None and observed.selector.matches(unstructured.labels(candidate))


def with_adopted(groups: tuple[ChildGroup, ...], adopted: Mapping[ResourceId, Sequence[JsonObject]]) -> tuple[ChildGroup, ...]:
    """`groups` with the children that were `adopted`, by resource."""
    return tuple(with_objects(group, (*group.objects, *adopted.get(group.info.id, ()))) for group in groups) if adopted else groups


def with_objects(group: ChildGroup, objects: tuple[JsonObject, ...]) -> ChildGroup:
    """`group` with other objects in it."""
    return ChildGroup(info=group.info, method=group.method, objects=objects)


def _controlled(obj: JsonObject, *, by: JsonObject) -> JsonObject:
    return _owned_by(obj, [*_references_of_others(obj, unstructured.uid(by)), reference_to(by)])


def _disowned(obj: JsonObject, *, by: str) -> JsonObject:
    return _owned_by(obj, _references_of_others(obj, by))


def _references_of_others(obj: JsonObject, uid: str) -> list[JsonObject]:
    return [reference for reference in owner_references(obj) if unstructured.text(reference, "uid") != uid]


def _owned_by(obj: JsonObject, references: list[JsonObject]) -> JsonObject:
    return {**obj, "metadata": {**unstructured.metadata(obj), "ownerReferences": [*references]}}
