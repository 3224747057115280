"""One ordered `Plan` from the claimed children and what was desired.

The children of a parent that is being deleted are the garbage collector's: to recreate them would only hold it up, so nothing is planned.
"""

from collections.abc import Sequence
from typing import assert_never

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.changes import Change, Current, Drifted, Missing, Unwanted, changes_of
from metaloop.reconciler.core.lastapplied import new_child
from metaloop.reconciler.core.model import ChildAction, ChildGroup, CreateChild, DeleteChild, DesiredChild, Observed, Plan
from metaloop.reconciler.core.strategy import replacement_of


def plan_of(observed: Observed, children: Sequence[ChildGroup], desired: Sequence[DesiredChild]) -> Plan:
    """What to do so that a parent's claimed children become the desired ones: deletions first, so that what they hold is free."""
    if observed.is_deleting:
        return Plan()
    actions = [action for change in changes_of(children, desired) if (action := action_for(change, parent=observed.parent)) is not None]
    return Plan(
        deletions=tuple([action for action in actions if isinstance(action, DeleteChild)]),
        writes=tuple([action for action in actions if not isinstance(action, DeleteChild)]),
    )


def action_for(change: Change, *, parent: JsonObject) -> ChildAction | None:
    """What one change calls for; None where there is nothing to do, or nothing that its update method allows."""
    match change:
        case Current():
            return None
        case Missing(desired=desired):
            return CreateChild(info=desired.info, obj=new_child(desired.obj, parent=parent), reason="desired, and not there")
        case Drifted():
            return replacement_of(change)
        case Unwanted(info=info, observed=observed):
            is_going = unstructured.is_deleting(observed)
            return None if is_going else DeleteChild(info=info, obj=observed, reason="no longer desired")
        case _:
            assert_never(change)
