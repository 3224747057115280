"""What the kinds that share the pipeline do differently."""

from collections.abc import Callable
from dataclasses import dataclass

from metaloop.common.api.hook import HookKeys
from metaloop.common.json import JsonObject
from metaloop.common.objects.selector import Selector
from metaloop.reconciler.core.children.claim import Claims
from metaloop.reconciler.core.model import Answer, Observed
from metaloop.reconciler.core.rollout.revisions import RevisionHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One kind's answers to the questions of the pipeline: functions of what was observed, and of what a hook answered."""

    keys: HookKeys
    owns_status: bool
    """Whether the parent's status is this controller's to write, beside what its hook answers."""
    is_selected: Callable[[Observed], bool]
    """Whether the controller's own selectors select the parent."""
    selector: Callable[[Observed], Selector | None]
    """Which labels the parent's children have; None where they may have any. Raises InvalidParent."""
    claims: Callable[[Observed], Claims]
    """Which candidates are the parent's children."""
    history: Callable[[Observed], RevisionHistory | None]
    """How the parent's revisions are kept; None where none of its children roll now."""
    marked: Callable[[JsonObject, Observed], JsonObject]
    """A desired child with the marks by which this kind knows its own."""
    status: Callable[[JsonObject, Answer], JsonObject | None]
    """The status that the parent ought to have after an answer; None where the answer leaves it as it is."""
    changed: Callable[[JsonObject, Answer], JsonObject | None]
    """The parent with the labels and annotations that an answer wants it to have; None where it has them."""
