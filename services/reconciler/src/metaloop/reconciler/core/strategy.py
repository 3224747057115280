"""Update strategy: what a drifted child's update method turns the change into.

A child that differs only in what is remembered of it (it was adopted, or someone made it as desired before us) is never replaced for that: every method but
`OnDelete` has it remembered in place.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from metaloop.common.api.rules import UpdateMethod
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.changes import ApplyStrategy, Drifted
from metaloop.reconciler.core.model import ChildAction

Replacement: TypeAlias = ChildAction | None


def _leave(_: Drifted, __: ApplyStrategy) -> Replacement:
    return None


def _update(drifted: Drifted, how: ApplyStrategy) -> Replacement:
    return how.updated(drifted)


def _recreate(drifted: Drifted, how: ApplyStrategy) -> Replacement:
    return how.recreated(drifted)


_WHEN_CHANGED: Final[dict[UpdateMethod, Callable[[Drifted, ApplyStrategy], Replacement]]] = {
    "OnDelete": _leave,
    "Recreate": _recreate,
    "InPlace": _update,
    # Without revisions of the parent there is nothing to roll between: all at once.
    "RollingRecreate": _recreate,
    "RollingInPlace": _update,
}


def replacement_of(drifted: Drifted, *, how: ApplyStrategy) -> Replacement:
    """The action that a drifted child calls for; None where it is left as it is."""
    if unstructured.is_deleting(drifted.observed):
        return None
    if drifted.applied.is_changed:
        return _WHEN_CHANGED[drifted.desired.method](drifted, how)
    return None if drifted.desired.method == "OnDelete" else how.updated(drifted)
