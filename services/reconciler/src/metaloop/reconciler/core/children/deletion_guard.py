"""Guards against an answer that deletes too much: its deletions are held back until somebody confirms them.

The rest of the plan is carried out. Only children that the answer no longer desires are counted, not those that are
recreated, nor those that a finalize hook cleans up. An answer without children is valid and deletes them all, so
nothing is held back unless somebody sets a limit.
"""

from dataclasses import dataclass, replace
from typing import Final

from metaloop.common.api import CONFIRM_DELETION_ANNOTATION, MAX_DELETE_SHARE_ANNOTATION
from metaloop.common.errors import InvalidSpec
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.children.plan import NO_LONGER_DESIRED
from metaloop.reconciler.core.model import ChildGroup, DeleteChild, Observed, Plan
from metaloop.reconciler.errors import DeletionHeldBack, Failure

_NAMED_AT_MOST: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionLimits:
    """How much an answer may delete unconfirmed."""

    share: float
    """The share of a parent's children."""
    min_children: int
    """A parent with fewer children may lose any number of them."""
    emptied_parents: int
    """How many parents of one controller may lose all their children within a minute. 0 means any number."""


DEFAULT_LIMITS: Final = DeletionLimits(share=1.0, min_children=5, emptied_parents=0)
"""The limits that hold nothing back, unless a controller's annotation sets a share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """The part of a plan that may be carried out, and why the rest was held back, if there is any."""

    plan: Plan
    held_back: DeletionHeldBack | None = None

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What is held back, as a failure of the plan."""
        return (Failure(what="delete children", error=self.held_back),) if self.held_back is not None else ()


def undesired_deletions(plan: Plan) -> list[DeleteChild]:
    """The deletions of children that are no longer desired."""
    return [action for action in plan.deletions if action.reason == NO_LONGER_DESIRED]


def is_guarded(observed: Observed) -> bool:
    """Whether the guards apply: nobody confirmed the deletions, and the parent is not being finalized."""
    return not observed.is_finalizing and not _is_confirmed(observed)


def deletes_all(plan: Plan, children: tuple[ChildGroup, ...]) -> bool:
    """Whether a plan deletes all children of a parent as no longer desired."""
    undesired = len(undesired_deletions(plan))
    return 0 < undesired == _remaining(children)


def guarded(plan: Plan, children: tuple[ChildGroup, ...], observed: Observed, *, limits: DeletionLimits, emptied: int) -> Guarded:
    """The plan without what is held back. Raises InvalidSpec for a bad annotation of the controller.

    `emptied` is the number of parents of this controller that lost all their children within a minute.
    """
    share, undesired = share_of(observed, limits), undesired_deletions(plan)
    if not undesired or not is_guarded(observed):
        return Guarded(plan=plan)
    count = _remaining(children)
    if count >= limits.min_children and len(undesired) > share * count:
        return _hold_back(plan, undesired, observed, why=f"no more than {share:.0%} of its {count} children may go unconfirmed")
    if limits.emptied_parents and emptied >= limits.emptied_parents and deletes_all(plan, children):
        return _hold_back(plan, undesired, observed, why=f"{emptied} parents of this controller lost all their children within a minute")
    return Guarded(plan=plan)


def share_of(observed: Observed, limits: DeletionLimits) -> float:
    """The share of its children that a parent may lose, as the annotation or the limit says. Raises InvalidSpec."""
    text = unstructured.annotations(observed.controller.raw).get(MAX_DELETE_SHARE_ANNOTATION)
    if text is None:
        return limits.share
    field = f"metadata.annotations[{MAX_DELETE_SHARE_ANNOTATION}]"
    try:
        share = float(text)
    except ValueError as error:
        raise InvalidSpec(field, f"must be a number from 0 to 1, not {text!r}") from error
    if not 0 <= share <= 1:
        raise InvalidSpec(field, f"must be a number from 0 to 1, not {text!r}")
    return share


def _is_confirmed(observed: Observed) -> bool:
    if unstructured.annotations(observed.controller.raw).get(CONFIRM_DELETION_ANNOTATION) == "true":
        return True
    return unstructured.annotations(observed.parent).get(CONFIRM_DELETION_ANNOTATION) == _confirmation(observed)


def _confirmation(observed: Observed) -> str:
    """The annotation that confirms deletions until the parent's spec changes. Kinds without generation use "true"."""
    generation = unstructured.generation(observed.parent)
    return str(generation) if generation else "true"


def _remaining(children: tuple[ChildGroup, ...]) -> int:
    """The number of children that are not being deleted."""
    return sum(not unstructured.is_deleting(obj) for group in children for obj in group.objects)


def _hold_back(plan: Plan, undesired: list[DeleteChild], observed: Observed, *, why: str) -> Guarded:
    names = ", ".join(unstructured.describe(action.obj) for action in undesired[:_NAMED_AT_MOST])
    rest = f" and {len(undesired) - _NAMED_AT_MOST} more" if len(undesired) > _NAMED_AT_MOST else ""
    remedy = f"to confirm, annotate the parent with {CONFIRM_DELETION_ANNOTATION}={_confirmation(observed)}"
    kept = [action for action in plan.deletions if action.reason != NO_LONGER_DESIRED]
    held_back = DeletionHeldBack(f"the hook's answer deletes {len(undesired)} children ({names}{rest}): {why}; {remedy}")
    return Guarded(plan=replace(plan, deletions=tuple(kept)), held_back=held_back)
