"""Child diff: observed against desired children, as `Missing | Drifted | Unwanted | Current`."""

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
    """Desired, and not there."""

    desired: DesiredChild


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifted:
    """Desired and there, but different; `applied` is what it ought to be."""

    desired: DesiredChild
    observed: JsonObject
    applied: ApplyResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Undesired:
    """There, and not desired."""

    info: ResourceInfo
    observed: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """There, and as desired."""

    observed: JsonObject


Change: TypeAlias = Missing | Drifted | Undesired | Current


class ApplyStrategy(Protocol):
    """How children are written, and so what counts as a difference: dynamic apply or server-side apply."""

    def applied(self, observed: JsonObject, desired: DesiredChild) -> ApplyResult:
        """What applying `desired` makes of the child that was observed."""
        ...

    def created(self, desired: DesiredChild, *, parent: JsonObject) -> ChildAction:
        """What brings a missing child about, under the parent's control."""
        ...

    def updated(self, drifted: Drifted) -> ChildAction:
        """What gives a child its desired state and lets it be the same object."""
        ...

    def recreated(self, drifted: Drifted) -> ChildAction:
        """What makes room for a child to be created anew; the next sync creates it."""
        ...


def changes_of(groups: Sequence[ChildGroup], desired: Sequence[DesiredChild], *, strategy: ApplyStrategy) -> Iterator[Change]:
    """One change for every child that is observed or desired: the unwanted first, each kind in the order it was declared."""
    wanted = {(child.info.id, child.namespace, child.name) for child in desired}
    there: dict[object, JsonObject] = {}
    for group in groups:
        for obj in group.objects:
            key = (group.info.id, unstructured.namespace(obj), unstructured.name(obj))
            there[key] = obj
            if key not in wanted:
                yield Undesired(info=group.info, observed=obj)
    for child in desired:
        yield change_of(child, there.get((child.info.id, child.namespace, child.name)), strategy=strategy)


def change_of(desired: DesiredChild, observed: JsonObject | None, *, strategy: ApplyStrategy) -> Missing | Drifted | Current:
    """How one desired child stands."""
    if observed is None:
        return Missing(desired=desired)
    applied = strategy.applied(observed, desired)
    if applied.is_changed or not applied.is_recorded:
        return Drifted(desired=desired, observed=observed, applied=applied)
    return Current(observed=observed)
