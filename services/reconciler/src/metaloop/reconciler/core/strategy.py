"""Update strategy: what a drifted child's update method turns the change into.

A child that differs only in what our annotation remembers (it was adopted, or someone made it as desired before us) is never replaced for that: every method but
`OnDelete` writes the annotation in place.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from metaloop.common.api.composite import UpdateMethod
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.changes import Drifted
from metaloop.reconciler.core.model import DeleteChild, UpdateChild

Replacement: TypeAlias = UpdateChild | DeleteChild | None


def _leave(_: Drifted) -> Replacement:
    return None


def _update(drifted: Drifted) -> Replacement:
    return UpdateChild(info=drifted.desired.info, obj=drifted.applied.obj, reason="differs from what is desired")


def _recreate(drifted: Drifted) -> Replacement:
    return DeleteChild(info=drifted.desired.info, obj=drifted.observed, reason="differs from what is desired, and is updated by recreation")


_WHEN_CHANGED: Final[dict[UpdateMethod, Callable[[Drifted], Replacement]]] = {
    "OnDelete": _leave,
    "Recreate": _recreate,
    "InPlace": _update,
    # Without revisions of the parent there is nothing to roll between: all at once.
    "RollingRecreate": _recreate,
    "RollingInPlace": _update,
}


def replacement_of(drifted: Drifted) -> Replacement:
    """The action that a drifted child calls for; None where it is left as it is."""
    if unstructured.is_deleting(drifted.observed):
        return None
    if drifted.applied.is_changed:
        return _WHEN_CHANGED[drifted.desired.method](drifted)
    if drifted.desired.method == "OnDelete":
        return None
    return UpdateChild(info=drifted.desired.info, obj=drifted.applied.obj, reason="is as desired, but doesn't remember what was applied")
