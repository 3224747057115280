"""Update strategy: what a drifted child's update method turns the change into.

A child that differs only in what is remembered of it (it was adopted, or someone made it as desired before us) is never replaced for that: every method but
`OnDelete` has it remembered in place.
"""

from typing import TypeAlias, assert_never

from metaloop.common.api.rules import UPDATE_METHODS
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.changes import ApplyStrategy, Drifted
from metaloop.reconciler.core.model import ChildAction

Replacement: TypeAlias = ChildAction | None


def replacement_of(drifted: Drifted, *, how: ApplyStrategy) -> Replacement:
    """The action that a drifted child calls for; None where it is left as it is."""
    if unstructured.is_deleting(drifted.observed):
        return None
    match UPDATE_METHODS[drifted.desired.method].on_drift:
        case "leave":
            return None
        case "recreate" if drifted.applied.is_changed:
            return how.recreated(drifted)
        case "recreate" | "update":
            return how.updated(drifted)
        case action:
            assert_never(action)
