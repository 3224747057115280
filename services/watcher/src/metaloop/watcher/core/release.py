"""Whether a controller waits, when it is deleted, until its finalizers are off its parents; and what to do about that next."""

from enum import Enum

from metaloop.common.api import ON_DELETION_ANNOTATION, RELEASE_FINALIZER, RELEASE_FINALIZERS
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured


class Step(Enum):
    """What is next for a controller."""

    NOTHING = "nothing"
    HOLD = "hold"
    """Its own deletion has to wait for us: put our finalizer on it."""
    LET_GO = "let go"
    """Its owner no longer wants that: take our finalizer off."""
    RELEASE = "release"
    """It is being deleted: free its parents, and then it."""


def step_of(raw: JsonObject) -> Step:
    """What is next for a controller as it is."""
    wants_it = unstructured.annotations(raw).get(ON_DELETION_ANNOTATION) == RELEASE_FINALIZERS
    holds = RELEASE_FINALIZER in unstructured.finalizers(raw)
    if unstructured.is_deleting(raw):
        # Nothing can be put on it any more; and who takes the annotation off in the middle has changed their mind.
        return (Step.RELEASE if wants_it else Step.LET_GO) if holds else Step.NOTHING
    if wants_it == holds:
        return Step.NOTHING
    return Step.HOLD if wants_it else Step.LET_GO


def with_release_finalizer(raw: JsonObject, *, held: bool) -> list[str]:
    """The finalizers of a controller, with ours among them or not."""
    others = [each for each in unstructured.finalizers(raw) if each != RELEASE_FINALIZER]
    return [*others, RELEASE_FINALIZER] if held else others


def left_behind(finalizer: str, bearers: list[str], *, kind: str, name: str) -> str:
    """What to tell about parents that still have the finalizer of a controller that is gone."""
    named = ", ".join(bearers[:3]) + (", …" if len(bearers) > 3 else "")
    return (
        f"{len(bearers)} parents still have the finalizer {finalizer}, and nobody takes it off: they can't be deleted ({named}). "
        f"`metaloop release-finalizers {kind}/{name}` takes it off; or create the controller again. "
        f"To have that done whenever a controller is deleted, annotate it with {ON_DELETION_ANNOTATION}: {RELEASE_FINALIZERS}"
    )
