"""What the kinds of controllers that share the pipeline do differently."""

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
    """One kind's variant of the pipeline: functions of what was observed and of what a hook answered."""

    keys: HookKeys
    owns_status: bool
    """Whether the controller may write to the parent's status beside what its hook answers."""
    is_selected: Callable[[Observed], bool]
    """Whether the controller's own selectors select the parent."""
    selector: Callable[[Observed], Selector | None]
    """Selects the parent's children by their labels. None if they may have any labels. Raises InvalidParent."""
    claims: Callable[[Observed], Claims]
    """Which candidates are the parent's children."""
    history: Callable[[Observed], RevisionHistory | None]
    """How the parent's revisions are kept. None if none of its children roll now."""
    with_tracking: Callable[[JsonObject, Observed], JsonObject]
    """A desired child with the label or annotation by which this kind recognizes its own children."""
    next_status: Callable[[JsonObject, Answer], JsonObject | None]
    """The status that the parent should have after an answer. None if the answer leaves the status as it is."""
    with_changes: Callable[[JsonObject, Answer], JsonObject | None]
    """The parent with the labels and annotations that an answer asks for. None if it has them already."""
