"""Compares the observed children with the desired ones, as `Missing | Drifted | Undesired | Current`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.apply.last_applied import ApplyResult
from metaloop.reconciler.core.model import ChildAction, ChildGroup, DesiredChild


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Desired, but does not exist."""

    desired: DesiredChild


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifted:
    """Desired, and exists in another form. `applied` is the form that it should have."""

    desired: DesiredChild
    observed: JsonObject
    applied: ApplyResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Undesired:
    """Exists, but is not desired."""

    info: ResourceInfo
    observed: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """Exists as desired."""

    observed: JsonObject


Change: TypeAlias = Missing | Drifted | Undesired | Current


class ApplyStrategy(Protocol):
    """How children are written, and so what counts as a difference: dynamic apply or server-side apply."""

    def applied(self, observed: JsonObject, desired: DesiredChild) -> ApplyResult:
        """The result of applying `desired` to the observed child."""
        ...

    def created(self, desired: DesiredChild, *, parent: JsonObject) -> ChildAction:
        """The action that creates a missing child, controlled by the parent."""
        ...

    def updated(self, drifted: Drifted) -> ChildAction:
        """The action that updates a child in place."""
        ...

    def recreated(self, drifted: Drifted) -> ChildAction:
        """The action that deletes a child so that the next sync creates it again."""
        ...


def changes_of(groups: Sequence[ChildGroup], desired: Sequence[DesiredChild], *, strategy: ApplyStrategy) -> Iterator[Change]:
    """One change for each child that is observed or desired: first the undesired, then the desired ones in order."""
    desired_keys = {(child.info.id, child.namespace, child.name) for child in desired}
    observed: dict[object, JsonObject] = {}
    for group in groups:
        for obj in group.objects:
            key = (group.info.id, unstructured.namespace(obj), unstructured.name(obj))
            observed[key] = obj
            if key not in desired_keys:
                yield Undesired(info=group.info, observed=obj)
    for child in desired:
        yield change_of(child, observed.get((child.info.id, child.namespace, child.name)), strategy=strategy)


def change_of(desired: DesiredChild, observed: JsonObject | None, *, strategy: ApplyStrategy) -> Missing | Drifted | Current:
    """The change of one desired child."""
    if observed is None:
        return Missing(desired=desired)
    applied = strategy.applied(observed, desired)
    if applied.is_changed or not applied.is_recorded:
        return Drifted(desired=desired, observed=observed, applied=applied)
    return Current(observed=observed)
