"""DecoratorController: a parent that somebody else manages, attachments known by owner and annotation, changes to the parent's own metadata.

An attachment is the parent's by controllerRef, and this decorator's by an annotation that names it: several decorators, and the composite that the
parent may be a parent of, tell theirs apart by it. Nothing is adopted and nothing released.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from metaloop.common.api import DECORATOR_ANNOTATION
from metaloop.common.api.decorator import KEYS
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.reconciler.core.apply.equality import same
from metaloop.reconciler.core.children.claim import Claims, with_objects
from metaloop.reconciler.core.model import Answer, ChildGroup, MetadataChanges, Observed
from metaloop.reconciler.core.pipeline import sync
from metaloop.reconciler.core.variant import Variant


def _is_selected(observed: Observed) -> bool:
    rule = observed.controller.parent_rule(observed.info.id)
    parent = observed.parent
    return rule is not None and rule.selects(labels=unstructured.labels(parent), annotations=unstructured.annotations(parent))


def _no_selector(_: Observed) -> None:
    """Attachments have whatever labels they want."""


def _no_history(_: Observed) -> None:
    """Attachments never roll: their methods act as the plain ones."""


def claims_of(observed: Observed) -> Claims:
    """The attachments among the candidates; there is never anything to write about it."""
    return Claims(groups=tuple([_attached(group, observed) for group in observed.groups]), actions=())


def _attached(group: ChildGroup, observed: Observed) -> ChildGroup:
    return with_objects(group, tuple([candidate for candidate in group.objects if _is_attached(candidate, observed)]))


def _is_attached(candidate: JsonObject, observed: Observed) -> bool:
    owner = controller_ref(candidate)
    by_us = unstructured.annotations(candidate).get(DECORATOR_ANNOTATION) == observed.controller.name
    return by_us and owner is not None and owner.uid == observed.uid


def _marked(child: JsonObject, observed: Observed) -> JsonObject:
    metadata = unstructured.metadata(child)
    annotations = unstructured.child_object(metadata, "annotations")
    return {**child, "metadata": {**metadata, "annotations": {**annotations, DECORATOR_ANNOTATION: observed.controller.name}}}


def _status(_parent: JsonObject, answer: Answer) -> JsonObject | None:
    return answer.status


def _changed(parent: JsonObject, answer: Answer) -> JsonObject | None:
    metadata = unstructured.metadata(parent)
    changed = {
        **_with_changes(metadata, "labels", answer.labels),
        **_with_changes(metadata, "annotations", answer.annotations),
    }
    return {**parent, "metadata": {**metadata, **changed}} if changed else None


def _with_changes(metadata: JsonObject, key: str, changes: MetadataChanges) -> JsonObject:
    """The map at `key` with `changes`, under its key; empty where they change nothing."""
    before = unstructured.child_object(metadata, key)
    after = {**before, **_wanted(changes)}
    for gone in changes.keys() - _wanted(changes).keys():
        after.pop(gone, None)
    return {} if same(before, after) else {key: after}


def _wanted(changes: MetadataChanges) -> Mapping[str, str]:
    return {key: value for key, value in changes.items() if value is not None}


DECORATOR: Final = Variant(
    keys=KEYS,
    owns_status=False,
    is_selected=_is_selected,
    selector=_no_selector,
    claims=claims_of,
    history=_no_history,
    marked=_marked,
    status=_status,
    changed=_changed,
)

SYNC: Final = partial(sync, variant=DECORATOR)
