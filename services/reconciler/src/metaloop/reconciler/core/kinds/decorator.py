"""DecoratorController: its parents are managed by others. It adds attachments, and changes the parents' metadata.

The controllerRef of an attachment names the parent, and an annotation names the decorator. The annotation tells the
attachments of several decorators apart, and from the children of a composite that the object may be a parent of.
Nothing is adopted or released.
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
from metaloop.reconciler.core.children.claim import Claims
from metaloop.reconciler.core.model import Answer, ChildGroup, MetadataChanges, Observed
from metaloop.reconciler.core.pipeline import sync
from metaloop.reconciler.core.variant import Variant


def _is_selected(observed: Observed) -> bool:
    rule = observed.controller.parent_rule(observed.info.id)
    parent = observed.parent
    return rule is not None and rule.selects(labels=unstructured.labels(parent), annotations=unstructured.annotations(parent))


def _no_selector(_: Observed) -> None:
    """Attachments may have any labels."""


def _no_history(_: Observed) -> None:
    """Attachments never roll. A rolling update method acts as the plain one."""


def claims_of(observed: Observed) -> Claims:
    """The attachments among the candidates. Nothing is ever written to claim them."""
    return Claims(groups=tuple([_attached(group, observed) for group in observed.groups]), actions=())


def _attached(group: ChildGroup, observed: Observed) -> ChildGroup:
    return group.with_objects(tuple([candidate for candidate in group.objects if _is_attached(candidate, observed)]))


def _is_attached(candidate: JsonObject, observed: Observed) -> bool:
    owner = controller_ref(candidate)
    by_us = unstructured.annotations(candidate).get(DECORATOR_ANNOTATION) == observed.controller.name
    return by_us and owner is not None and owner.uid == observed.uid


def _with_tracking(child: JsonObject, observed: Observed) -> JsonObject:
    metadata = unstructured.metadata(child)
    annotations = unstructured.child_object(metadata, "annotations")
    return {**child, "metadata": {**metadata, "annotations": {**annotations, DECORATOR_ANNOTATION: observed.controller.name}}}


def _next_status(_parent: JsonObject, answer: Answer) -> JsonObject | None:
    return answer.status


def _with_changes(parent: JsonObject, answer: Answer) -> JsonObject | None:
    metadata = unstructured.metadata(parent)
    changed = {
        **_changed_map(metadata, "labels", answer.labels),
        **_changed_map(metadata, "annotations", answer.annotations),
    }
    return {**parent, "metadata": {**metadata, **changed}} if changed else None


def _changed_map(metadata: JsonObject, key: str, changes: MetadataChanges) -> JsonObject:
    """`{key: map}` with `changes` made to the map at `key`. Empty if they change nothing."""
    before = unstructured.child_object(metadata, key)
    after = {**before, **_set_by(changes)}
    for gone in changes.keys() - _set_by(changes).keys():
        after.pop(gone, None)
    return {} if same(before, after) else {key: after}


def _set_by(changes: MetadataChanges) -> Mapping[str, str]:
    return {key: value for key, value in changes.items() if value is not None}


DECORATOR: Final = Variant(
    keys=KEYS,
    owns_status=False,
    is_selected=_is_selected,
    selector=_no_selector,
    claims=claims_of,
    history=_no_history,
    with_tracking=_with_tracking,
    next_status=_next_status,
    with_changes=_with_changes,
)

SYNC: Final = partial(sync, variant=DECORATOR)
