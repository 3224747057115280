"""CompositeController: its parents are of a kind of their own, and have children that their selector matches.

The parent's status belongs to the controller, and states the generation that it is about.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final, cast

from metaloop.common.api.composite import GENERATED_LABEL, KEYS, CompositeController, child_selector
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.selector import Selector
from metaloop.reconciler.core.children.claim import claims_of
from metaloop.reconciler.core.model import Answer, Observed
from metaloop.reconciler.core.parent.edits import next_status
from metaloop.reconciler.core.parent.finalizer import reaches_children
from metaloop.reconciler.core.pipeline import sync
from metaloop.reconciler.core.rollout.field_paths import paths
from metaloop.reconciler.core.rollout.revisions import RevisionHistory
from metaloop.reconciler.core.variant import Variant


def _is_selected(observed: Observed) -> bool:
    return _controller(observed).parents[0].labels.matches(unstructured.labels(observed.parent))


def _selector(observed: Observed) -> Selector:
    return child_selector(_controller(observed), observed.parent)


def _history(observed: Observed) -> RevisionHistory | None:
    if not any(group.rolls for group in observed.groups) or not reaches_children(observed):
        return None
    controller = _controller(observed)
    return RevisionHistory(field_paths=paths(controller.revision_field_paths), labels=_revision_labels(controller, observed.parent))


def _revision_labels(controller: CompositeController, parent: JsonObject) -> Mapping[str, str]:
    if controller.generate_selector:
        return {GENERATED_LABEL: unstructured.uid(parent)}
    template = unstructured.child_object(unstructured.child_object(parent, "spec"), "template")
    return unstructured.labels(template)


def _with_tracking(child: JsonObject, observed: Observed) -> JsonObject:
    """With `generateSelector`, add the generated label, unless the hook gave it a value of its own."""
    metadata = unstructured.metadata(child)
    labels = unstructured.child_object(metadata, "labels")
    if not _controller(observed).generate_selector or GENERATED_LABEL in labels:
        return child
    return {**child, "metadata": {**metadata, "labels": {**labels, GENERATED_LABEL: observed.uid}}}


def _next_status(parent: JsonObject, answer: Answer) -> JsonObject:
    return next_status(parent, answer.status)


def _without_changes(_parent: JsonObject, _answer: Answer) -> None:
    """A composite changes nothing of its parent but the status. The rest is the user's."""


def _controller(observed: Observed) -> CompositeController:
    return cast("CompositeController", observed.controller)


COMPOSITE: Final = Variant(
    keys=KEYS,
    owns_status=True,
    is_selected=_is_selected,
    selector=_selector,
    claims=claims_of,
    history=_history,
    with_tracking=_with_tracking,
    next_status=_next_status,
    with_changes=_without_changes,
)

SYNC: Final = partial(sync, variant=COMPOSITE)
