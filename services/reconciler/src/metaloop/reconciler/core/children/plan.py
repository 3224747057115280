"""Plans the actions that turn a parent's claimed children into the desired ones."""

from collections.abc import Sequence
from typing import Final, assert_never

from metaloop.common.api.rules import UPDATE_METHODS
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.children.changes import ApplyStrategy, Change, Current, Drifted, Missing, Undesired, changes_of
from metaloop.reconciler.core.model import ChildAction, ChildGroup, DeleteChild, DesiredChild, Observed, Plan

NO_LONGER_DESIRED: Final = "no longer desired"


def plan_of(observed: Observed, children: Sequence[ChildGroup], desired: Sequence[DesiredChild], *, strategy: ApplyStrategy) -> Plan:
    """What to do so that a parent has the desired children. Deletions come first, to free what the children hold."""
    changes = changes_of(children, desired, strategy=strategy)
    actions = [action for change in changes if (action := action_for(change, parent=observed.parent, strategy=strategy)) is not None]
    return Plan(
        deletions=tuple([action for action in actions if isinstance(action, DeleteChild)]),
        writes=tuple([action for action in actions if not isinstance(action, DeleteChild)]),
    )


def action_for(change: Change, *, parent: JsonObject, strategy: ApplyStrategy) -> ChildAction | None:
    """The action for one change. None if there is nothing to do, or the update method allows nothing."""
    match change:
        case Current():
            return None
        case Missing(desired=desired):
            return strategy.created(desired, parent=parent)
        case Drifted():
            return action_on_drift(change, strategy=strategy)
        case Undesired(info=info, observed=observed):
            is_deleting = unstructured.is_deleting(observed)
            return None if is_deleting else DeleteChild(info=info, obj=observed, reason=NO_LONGER_DESIRED)
        case _:
            assert_never(change)


def action_on_drift(drifted: Drifted, *, strategy: ApplyStrategy) -> ChildAction | None:
    """The action for a drifted child. None if it is left as it is."""
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
