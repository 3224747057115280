"""CompositeController: a parent of a kind of its own, children by its selector, a status that says for which generation it is true."""

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


def _marked(child: JsonObject, observed: Observed) -> JsonObject:
    """With `generateSelector`, the generated label, unless the hook gave it a value of its own."""
    metadata = unstructured.metadata(child)
    labels = unstructured.child_object(metadata, "labels")
    if not _controller(observed).generate_selector or GENERATED_LABEL in labels:
        return child
    return {**child, "metadata": {**metadata, "labels": {**labels, GENERATED_LABEL: observed.uid}}}


def _status(parent: JsonObject, answer: Answer) -> JsonObject:
    return next_status(parent, answer.status)


def _changed(_parent: JsonObject, _answer: Answer) -> None:
    """A composite's parent is its user's: nothing of it changes but its status."""


def _controller(observed: Observed) -> CompositeController:
    return cast("CompositeController", observed.controller)


COMPOSITE: Final = Variant(
    keys=KEYS,
    owns_status=True,
    is_selected=_is_selected,
    selector=_selector,
    claims=claims_of,
    history=_history,
    marked=_marked,
    status=_status,
    changed=_changed,
)

SYNC: Final = partial(sync, variant=COMPOSITE)
