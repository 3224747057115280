"""CompositeController: a parent of a kind of its own, children by its selector, a status that says for which generation it is true."""

from typing import Final, cast

from metaloop.common.api.composite import GENERATED_LABEL, CompositeController, child_selector
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.selector import Selector
from metaloop.reconciler.core.children.claim import claims_of
from metaloop.reconciler.core.hooks.keys import COMPOSITE_KEYS
from metaloop.reconciler.core.kinds.variant import Variant
from metaloop.reconciler.core.model import Answer, Observed
from metaloop.reconciler.core.parent.edits import next_status


def _is_selected(observed: Observed) -> bool:
    return _controller(observed).parents[0].labels.matches(unstructured.labels(observed.parent))


def _selector(observed: Observed) -> Selector:
    return child_selector(_controller(observed), observed.parent)


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
    keys=COMPOSITE_KEYS,
    is_selected=_is_selected,
    selector=_selector,
    claims=claims_of,
    marked=_marked,
    status=_status,
    changed=_changed,
)
