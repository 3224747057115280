"""One ordered `Plan` from the claimed children and what was desired."""

from collections.abc import Sequence
from typing import Final, assert_never

from metaloop.common.api.rules import UPDATE_METHODS
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.children.changes import ApplyStrategy, Change, Current, Drifted, Missing, Undesired, changes_of
from metaloop.reconciler.core.children.dynamic_apply import DYNAMIC_APPLY
from metaloop.reconciler.core.model import ChildAction, ChildGroup, DeleteChild, DesiredChild, Observed, Plan

NO_LONGER_DESIRED: Final = "no longer desired"


def plan_of(
    observed: Observed, children: Sequence[ChildGroup], desired: Sequence[DesiredChild], *, strategy: ApplyStrategy = DYNAMIC_APPLY
) -> Plan:
    """What to do so that a parent's claimed children become the desired ones: deletions first, so that what they hold is free."""
    changes = changes_of(children, desired, strategy=strategy)
    actions = [action for change in changes if (action := action_for(change, parent=observed.parent, strategy=strategy)) is not None]
    return Plan(
        deletions=tuple([action for action in actions if isinstance(action, DeleteChild)]),
        writes=tuple([action for action in actions if not isinstance(action, DeleteChild)]),
    )


def action_for(change: Change, *, parent: JsonObject, strategy: ApplyStrategy) -> ChildAction | None:
    """What one change calls for; None where there is nothing to do, or nothing that its update method allows."""
    match change:
        case Current():
            return None
        case Missing(desired=desired):
            return strategy.created(desired, parent=parent)
        case Drifted():
            return replacement_of(change, strategy=strategy)
        case Undesired(info=info, observed=observed):
            is_going = unstructured.is_deleting(observed)
            return None if is_going else DeleteChild(info=info, obj=observed, reason=NO_LONGER_DESIRED)
        case _:
            assert_never(change)


def replacement_of(drifted: Drifted, *, strategy: ApplyStrategy) -> ChildAction | None:
    """The action that a drifted child calls for; None where it is left as it is."""
    if unstructured.is_deleting(drifted.observed):
        return None
    match UPDATE_METHODS[drifted.desired.method].on_drift:
        case "leave":
            return None
        case "recreate" if drifted.applied.is_changed:
            return strategy.recreated(drifted)
        case "recreate" | "update":
            return strategy.updated(drifted)
        case action:
            assert_never(action)
