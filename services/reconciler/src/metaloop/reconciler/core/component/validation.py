"""Checks that the orders of a component's objects fit together, before anything is touched.

Rules
    1. An instance is not applied before its type, and not deleted after it. The same holds for an object and the
       namespace that it is in.
    2. A type or a namespace does not go while an instance, or an object in it, stays.
"""

from metaloop.common.errors import InvalidAnswer
from metaloop.reconciler.core.component.inventory import Inventory, Item
from metaloop.reconciler.core.component.item_index import indexed


def require_consistent(inventory: Inventory) -> None:
    """Raise InvalidAnswer for the first two items whose orders contradict each other."""
    index = indexed(inventory.values())
    for holder in inventory.values():
        for content in index.needing(holder):
            problem = _problem(holder, content)
            if problem:
                raise InvalidAnswer("children", problem)


def _problem(holder: Item, content: Item) -> str:
    """Why two items contradict each other. Empty if they don't."""
    if holder.is_desired and content.is_desired and content.apply_order < holder.apply_order:
        return f"{content.key} has apply order {content.apply_order}, before {holder.key} with {holder.apply_order}, which it needs"
    if holder.is_desired and content.is_desired and content.delete_order > holder.delete_order:
        return f"{content.key} has delete order {content.delete_order}, after {holder.key} with {holder.delete_order}, which it needs"
    if content.is_desired and not holder.is_desired:
        return f"{holder.key} is no longer among the objects, but {content.key} needs it"
    return ""
