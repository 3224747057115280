"""Claims children by their controllerRef. Each candidate is one of `Keep | Adopt | Release | Ignore`.

Every controller must follow these three rules, so that none fights another:

    1. Adopt an orphan that the selector matches, unless the orphan or the parent is being deleted.
    2. Release a child that the selector no longer matches, unless the parent is being deleted: the garbage collector
       then takes care of its children.
    3. Ignore an object that another controller owns, whatever its labels. Ignore what a controller of another kind
       attached to the parent and marked by an annotation, too, although its owner is the same.

Owners are compared by UID, so an object owns nothing because it has the name of a former owner. Before the first
adoption the parent must be read live, since its deletion may not have reached the cache. The shell does that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from metaloop.common.api import DECORATOR_ANNOTATION, MAP_KEY, TRACKING_ANNOTATIONS
from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref, owner_references
from metaloop.common.objects.resource import ResourceId
from metaloop.reconciler.core.apply.last_applied import controlled_by
from metaloop.reconciler.core.model import Adopt, ChildGroup, ClaimAction, Observed, Release
from metaloop.reconciler.errors import NameTaken


@dataclass(frozen=True, slots=True)
class Keep:
    """The candidate is this parent's child, and stays so."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """The candidate is not this parent's child, and nothing is done about it."""


_TRACKING: Final = frozenset(TRACKING_ANNOTATIONS)
KEEP, IGNORE = Keep(), Ignore()
Claim: TypeAlias = Keep | Adopt | Release | Ignore


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The claims on all candidates of a parent: its children by group, and the writes that make the claims true.

    Orphans to adopt are not in the groups yet. Their new version is known only once the adoption is written.
    """

    groups: tuple[ChildGroup, ...]
    actions: tuple[ClaimAction, ...]


def claims_of(observed: Observed) -> Claims:
    """The claims on all candidates of a parent."""
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
        groups.append(group.with_objects(tuple(kept)))
    return Claims(groups=tuple(groups), actions=tuple(actions))


def claim_of(candidate: JsonObject, *, group: ChildGroup, observed: Observed) -> Claim:
    """The claim on one candidate, by the three rules."""
    owner = controller_ref(candidate)
    if not _TRACKING.isdisjoint(unstructured.annotations(candidate)) or (owner is not None and owner.uid != observed.uid):
        return IGNORE
    is_match = _is_selected(candidate, observed)
    if owner is None:
        if not is_match or observed.is_deleting or unstructured.is_deleting(candidate):
            return IGNORE
        adopted = controlled_by(observed.parent, candidate)
        return Adopt(info=group.info, obj=adopted, reason="an orphan that the parent's selector matches")
    if is_match:
        return KEEP
    if observed.is_deleting:
        return IGNORE
    released = _without_owner(candidate, uid=observed.uid)
    return Release(info=group.info, obj=released, reason="the parent's selector no longer matches its labels")


def name_conflict(holder: JsonObject, *, desired: JsonObject, observed: Observed) -> Conflict | NameTaken:
    """Why a desired child could not be created while `holder` has its name.

    A Conflict ends once the holder is observed or gone. NameTaken does not: the holder is not ours to touch.
    """
    owner = controller_ref(holder)
    if unstructured.is_deleting(holder):
        return Conflict("an older object of this name is still being deleted")
    if owner is None:
        if _is_selected(holder, observed):
            return Conflict("an orphan of this name exists, and is not yet in the watcher's cache")
        return NameTaken("the name is taken by an object that has no controller, and that the parent may not adopt")
    if owner.uid != observed.uid:
        return NameTaken(f"the name is taken by an object that {owner.kind} {owner.name} controls")
    return _conflict_within(unstructured.annotations(holder), unstructured.annotations(desired))


def _conflict_within(holder: Mapping[str, str], desired: Mapping[str, str]) -> Conflict | NameTaken:
    """The conflict between two objects of one parent, by their annotations."""
    differing = [key for key in TRACKING_ANNOTATIONS if holder.get(key) != desired.get(key)]
    if not differing:
        return Conflict("it exists already, and is not yet in the watcher's cache")
    if differing == [MAP_KEY] and MAP_KEY in holder:
        rival = holder[MAP_KEY]
        return NameTaken(f"the name is taken by an output for another input of the parent (map key {rival})", rival=rival)
    decorator = holder.get(DECORATOR_ANNOTATION)
    return NameTaken(
        f"the name is taken by what {f'the decorator {decorator}' if decorator else 'another controller'} attached to the parent"
    )


def _is_selected(candidate: JsonObject, observed: Observed) -> bool:
    return observed.selector is not None and observed.selector.matches(unstructured.labels(candidate))


def with_adopted(groups: tuple[ChildGroup, ...], adopted: Mapping[ResourceId, Sequence[JsonObject]]) -> tuple[ChildGroup, ...]:
    """`groups` with the children that were `adopted`, by resource."""
    return tuple(group.with_objects((*group.objects, *adopted.get(group.info.id, ()))) for group in groups) if adopted else groups


def _without_owner(obj: JsonObject, *, uid: str) -> JsonObject:
    others = [reference for reference in owner_references(obj) if unstructured.text(reference, "uid") != uid]
    return {**obj, "metadata": {**unstructured.metadata(obj), "ownerReferences": [*others]}}
