"""What a kind of controller does its own way; everything else of a sync is the same for all of them."""

from collections.abc import Callable
from dataclasses import dataclass

from metaloop.common.json import JsonObject
from metaloop.common.objects.selector import Selector
from metaloop.reconciler.core.children.claim import Claims
from metaloop.reconciler.core.hooks.keys import HookKeys
from metaloop.reconciler.core.model import Answer, Observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One kind of controller: functions of what was observed, and of what a hook answered."""

    keys: HookKeys
    is_selected: Callable[[Observed], bool]
    """Whether the controller's own selectors select the parent."""
    selector: Callable[[Observed], Selector | None]
    """Which labels the parent's children have; raises InvalidParent."""
    claims: Callable[[Observed], Claims]
    """Which candidates are the parent's children."""
    marked: Callable[[JsonObject, Observed], JsonObject]
    """A desired child with the marks by which this variant knows its own."""
    status: Callable[[JsonObject, Answer], JsonObject | None]
    """The status that the parent ought to have after an answer; None where the answer leaves it as it is."""
    changed: Callable[[JsonObject, Answer], JsonObject | None]
    """The parent with the labels and annotations that an answer wants it to have; None where it has them."""
