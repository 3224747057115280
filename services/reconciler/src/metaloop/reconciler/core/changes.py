"""Child diff: observed against desired children, as `Missing | Drifted | Unwanted | Current`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.lastapplied import Applied, applied_to
from metaloop.reconciler.core.model import ChildGroup, DesiredChild


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Desired, and not there."""

    desired: DesiredChild


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifted:
    """Desired and there, but different; `applied` is what it ought to be."""

    desired: DesiredChild
    observed: JsonObject
    applied: Applied


@dataclass(frozen=True, slots=True, kw_only=True)
class Unwanted:
    """There, and not desired."""

    info: ResourceInfo
    observed: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """There, and as desired."""

    observed: JsonObject


Change: TypeAlias = Missing | Drifted | Unwanted | Current


def changes_of(groups: Sequence[ChildGroup], desired: Sequence[DesiredChild]) -> Iterator[Change]:
    """One change for every child that is observed or desired: the unwanted first, each kind in the order it was declared."""
    wanted = {(child.info.id, child.namespace, child.name) for child in desired}
    there: dict[object, JsonObject] = {}
    for group in groups:
        for obj in group.objects:
            key = (group.info.id, unstructured.namespace(obj), unstructured.name(obj))
            there[key] = obj
            if key not in wanted:
                yield Unwanted(info=group.info, observed=obj)
    for child in desired:
        yield change_of(child, there.get((child.info.id, child.namespace, child.name)))


def change_of(desired: DesiredChild, observed: JsonObject | None) -> Missing | Drifted | Current:
    """How one desired child stands."""
    if observed is None:
        return Missing(desired=desired)
    applied = applied_to(observed, desired.obj)
    if applied.is_changed or not applied.is_remembered:
        return Drifted(desired=desired, observed=observed, applied=applied)
    return Current(observed=observed)
