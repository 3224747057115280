"""DeletionGuards against an answer that deletes too much: such deletions are held back until somebody confirms them. The rest of the plan goes on.

Only what an answer no longer desires is counted: not what is recreated, and not what a finalize hook cleans up.
An answer without children deletes them all, and is valid: so nothing is held back unless somebody asked for it.
"""

from dataclasses import dataclass, replace
from typing import Final

from metaloop.common.api import CONFIRM_DELETION_ANNOTATION, MAX_DELETE_SHARE_ANNOTATION
from metaloop.common.errors import InvalidSpec
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.children.plan import NO_LONGER_DESIRED
from metaloop.reconciler.core.model import ChildGroup, DeleteChild, Observed, Plan
from metaloop.reconciler.errors import DeletionHeldBack

EVERYTHING: Final = 1.0
_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionLimits:
    """How much an answer may delete unconfirmed."""

    share: float = EVERYTHING
    """Of a parent's children."""
    min_children: int = 5
    """A parent with fewer children than that may lose any number of them."""
    emptied_parents: int = 0
    """How many parents of one controller may lose all of their children within a minute; 0: any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """What is left of a plan, and why something was held back, if anything was."""

    plan: Plan
    held: DeletionHeldBack | None = None


def undesired_deletions(plan: Plan) -> list[DeleteChild]:
    """The deletions of what is no longer desired."""
    return [action for action in plan.deletions if action.reason == NO_LONGER_DESIRED]


def is_guarded(observed: Observed) -> bool:
    """Whether deletions need a second thought at all: nobody confirmed them, and nothing is being finalized."""
    return not observed.is_finalizing and not _is_confirmed(observed)


def deletes_all(plan: Plan, children: tuple[ChildGroup, ...]) -> bool:
    """Whether a plan takes all that a parent has."""
    unwanted = len(undesired_deletions(plan))
    return 0 < unwanted == _living(children)


def guarded(plan: Plan, children: tuple[ChildGroup, ...], observed: Observed, *, limits: DeletionLimits, emptied: int = 0) -> Guarded:
    """The plan without what is held back; `emptied` parents of this controller lost all their children within a minute. Raises InvalidSpec."""
    share, unwanted = share_of(observed, limits), undesired_deletions(plan)
    if not unwanted or not is_guarded(observed):
        return Guarded(plan=plan)
    there = _living(children)
    if there >= limits.min_children and len(unwanted) > share * there:
        return _held(plan, unwanted, observed, why=f"no more than {share:.0%} of its {there} children may go unconfirmed")
    if limits.emptied_parents and emptied >= limits.emptied_parents and deletes_all(plan, children):
        return _held(plan, unwanted, observed, why=f"{emptied} parents of this controller lost all their children within a minute")
    return Guarded(plan=plan)


def share_of(observed: Observed, limits: DeletionLimits) -> float:
    """Which share of its children a parent may lose: as its controller says, else as the setting says. Raises InvalidSpec."""
    text = unstructured.annotations(observed.controller.raw).get(MAX_DELETE_SHARE_ANNOTATION)
    if text is None:
        return limits.share
    field = f"metadata.annotations[{MAX_DELETE_SHARE_ANNOTATION}]"
    try:
        share = float(text)
    except ValueError as error:
        raise InvalidSpec(field, f"must be a number from 0 to 1, and is {text!r}") from error
    if not 0 <= share <= 1:
        raise InvalidSpec(field, f"must be a number from 0 to 1, and is {text!r}")
    return share


def _is_confirmed(observed: Observed) -> bool:
    if unstructured.annotations(observed.controller.raw).get(CONFIRM_DELETION_ANNOTATION) == "true":
        return True
    return unstructured.annotations(observed.parent).get(CONFIRM_DELETION_ANNOTATION) == _confirmation(observed)


def _confirmation(observed: Observed) -> str:
    """What says yes to this parent as it is now, and no longer once its spec changes; kinds without generation can't tell that."""
    generation = unstructured.generation(observed.parent)
    return str(generation) if generation else "true"


def _living(children: tuple[ChildGroup, ...]) -> int:
    return sum(not unstructured.is_deleting(obj) for group in children for obj in group.objects)


def _held(plan: Plan, unwanted: list[DeleteChild], observed: Observed, *, why: str) -> Guarded:
    names = ", ".join(unstructured.describe(action.obj) for action in unwanted[:_NAMED])
    rest = f" and {len(unwanted) - _NAMED} more" if len(unwanted) > _NAMED else ""
    how = f"to confirm, annotate the parent with {CONFIRM_DELETION_ANNOTATION}={_confirmation(observed)}"
    kept = [action for action in plan.deletions if action.reason != NO_LONGER_DESIRED]
    held = DeletionHeldBack(f"the hook's answer deletes {len(unwanted)} children ({names}{rest}): {why}; {how}")
    return Guarded(plan=replace(plan, deletions=tuple(kept)), held=held)
