"""How a controller's deletion waits until its finalizer is removed from its parents: the next step of that."""

from enum import Enum

from metaloop.common.api import ON_DELETION_ANNOTATION, RELEASE_FINALIZER, RELEASE_FINALIZERS
from metaloop.common.api.controller import finalizer_of
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured

_FIRST_RETRY_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 60.0
_MOST_DOUBLINGS = 6


class ReleaseStep(Enum):
    """The next step for a controller."""

    NOTHING = "nothing"
    ADD_FINALIZER = "add finalizer"
    """Its deletion has to wait: add our finalizer to the controller."""
    REMOVE_FINALIZER = "remove finalizer"
    """Its deletion no longer has to wait: remove our finalizer from the controller."""
    RELEASE_PARENTS = "release parents"
    """It is being deleted: remove its finalizer from its parents, and then ours from it."""


def release_step_of(raw: JsonObject) -> ReleaseStep:
    """The next step for a controller as it is."""
    is_wanted = unstructured.annotations(raw).get(ON_DELETION_ANNOTATION) == RELEASE_FINALIZERS
    is_held = RELEASE_FINALIZER in unstructured.finalizers(raw)
    if unstructured.is_deleting(raw):
        # No finalizer can be added any more. Removing the annotation now cancels the release.
        if not is_held:
            return ReleaseStep.NOTHING
        return ReleaseStep.RELEASE_PARENTS if is_wanted else ReleaseStep.REMOVE_FINALIZER
    if is_wanted == is_held:
        return ReleaseStep.NOTHING
    return ReleaseStep.ADD_FINALIZER if is_wanted else ReleaseStep.REMOVE_FINALIZER


def with_release_finalizer(raw: JsonObject) -> list[str]:
    """The finalizers of a controller, and ours."""
    return [*without_release_finalizer(raw), RELEASE_FINALIZER]


def without_release_finalizer(raw: JsonObject) -> list[str]:
    """The finalizers of a controller without ours."""
    return [each for each in unstructured.finalizers(raw) if each != RELEASE_FINALIZER]


def retry_seconds(failures: int) -> float:
    """The wait before a step is tried again after so many failures in a row: 1 s, doubled with each, at most 60 s."""
    return min(_FIRST_RETRY_SECONDS * 2 ** min(failures - 1, _MOST_DOUBLINGS), _LONGEST_RETRY_SECONDS)


def unknown_parents_message(controller: ControllerId, problem: InvalidSpec) -> str:
    """The message about a controller whose deletion waits, and whose spec does not say what its parents are."""
    return (
        f"It is being deleted, and its finalizer stays on its parents because its spec is invalid: {problem}. "
        f"Repair the spec, and the deletion goes on. Or remove {RELEASE_FINALIZER} from its metadata.finalizers; "
        f"then `metaloop release-finalizers {controller}` takes its finalizer off its parents"
    )


def finalizers_kept_message(finalizer: str, problem: str) -> str:
    """The message about a controller whose deletion waits, because its finalizer cannot be removed from all parents."""
    return f"It is being deleted, and the finalizer {finalizer} cannot be removed from all its parents: {problem}. It is tried again"


def finalizers_left_message(finalizer: str, holders: list[str], *, kind: str, name: str) -> str:
    """The message about parents that still hold the finalizer of a deleted controller."""
    named = ", ".join(holders[:3]) + (", …" if len(holders) > 3 else "")
    option = "" if finalizer == finalizer_of(ControllerId(kind, name)) else f" --finalizer {finalizer}"
    return (
        f"{len(holders)} parents still have the finalizer {finalizer}, and nobody takes it off: they can't be deleted ({named}). "
        f"`metaloop release-finalizers {kind}/{name}{option}` takes it off; or create the controller again. "
        f"To have that done whenever a controller is deleted, annotate it with {ON_DELETION_ANNOTATION}: {RELEASE_FINALIZERS}"
    )
