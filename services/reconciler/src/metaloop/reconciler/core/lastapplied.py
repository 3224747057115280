"""What a child would look like once applied, and the annotation that remembers what was.

The annotation has Metacontroller's name and content: the compact JSON, with sorted keys, of the child as the hook wanted it, so a cluster can move
from the one to the other and back without a write.

Rules
    1. What belongs to the API server is nobody's wish: `status` and the metadata that it keeps. They stay as observed, whatever an answer says.
    2. Some hooks answer with the very object they were shown. What such an echo carries of the API server's own is not remembered either: it changes with
       each write, so remembering it would cause the next one. Explicit nulls and an empty status, which Go's encoder makes of any typed object, are
       remembered, as Metacontroller does.
    3. An annotation that means the same is left as it is, byte by byte. One that can't be read counts as none, and is written anew.
    4. Labels and annotations that the hook no longer mentions at all are given up one by one: those of others stay.
"""

from dataclasses import dataclass
from typing import Final

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JSONDecodeError, JsonObject, dumps_sorted, is_object, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import owner_references, reference_to
from metaloop.reconciler.core.equality import same
from metaloop.reconciler.core.merge import NEVER, merge_objects

SYSTEM_METADATA: Final = frozenset(
    {
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What became of an observed child by applying what is desired: the object to write, and what about it is new."""

    obj: JsonObject
    is_changed: bool
    """Whether anything but the annotation differs from what was observed."""
    is_remembered: bool
    """Whether the observed annotation already says what is desired."""


def new_child(desired: JsonObject, *, parent: JsonObject) -> JsonObject:
    """The object to create for `desired`: controlled by `parent`, and remembering what was applied."""
    wish = without_echo(desired)
    references = owner_references(wish)
    if all(unstructured.text(reference, "uid") != unstructured.uid(parent) for reference in references):
        references = [*references, reference_to(parent)]
    return _annotated({**wish, "metadata": {**unstructured.metadata(wish), "ownerReferences": [*references]}}, _encoded(wish))


def applied_to(observed: JsonObject, desired: JsonObject) -> Applied:
    """What applying `desired` makes of `observed`."""
    wish = without_echo(desired)
    text, stored = _encoded(wish), _stored(observed)
    last = wish if text == stored else _decoded(stored)
    is_remembered = last is wish or (last is not NEVER and same(last, wish))
    last_own = _without_system_fields(last)
    merged = merge_objects(observed, last_own, _keeping_maps(_without_system_fields(wish), last_own))
    return Applied(
        obj=merged if is_remembered else _annotated(merged, text),
        is_changed=merged is not observed,
        is_remembered=is_remembered,
    )


def without_echo(desired: JsonObject) -> JsonObject:
    """`desired` without our annotation and without values that only the API server can have given it (rule 2)."""
    metadata = unstructured.metadata(desired)
    echoed = [key for key in SYSTEM_METADATA if metadata.get(key)]
    annotations = metadata.get("annotations")
    is_annotated = is_object(annotations) and LAST_APPLIED_ANNOTATION in annotations
    if not echoed and not is_annotated:
        return desired
    kept = {key: value for key, value in metadata.items() if key not in echoed}
    if is_object(annotations) and is_annotated:
        kept["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED_ANNOTATION}
    return {**desired, "metadata": kept}


def _without_system_fields(obj: JsonObject) -> JsonObject:
    metadata = unstructured.metadata(obj)
    if "status" not in obj and SYSTEM_METADATA.isdisjoint(metadata):
        return obj
    own = {key: value for key, value in obj.items() if key != "status"}
    own["metadata"] = {key: value for key, value in metadata.items() if key not in SYSTEM_METADATA}
    return own


def _keeping_maps(desired: JsonObject, last: JsonObject) -> JsonObject:
    metadata = unstructured.metadata(desired)
    dropped = [key for key in ("labels", "annotations") if key not in metadata and key in unstructured.metadata(last)]
    return {**desired, "metadata": {**metadata, **{key: {} for key in dropped}}} if dropped else desired


def _encoded(wish: JsonObject) -> str:
    """The annotation's text: as Go's encoder writes it, which escapes what could end an HTML script."""
    remembered = {key: value for key, value in wish.items() if key != "status"} if wish.get("status") else wish
    text = dumps_sorted(remembered).decode()
    for char, escape in _GO_ESCAPES:
        text = text.replace(char, escape)
    return text


_GO_ESCAPES: Final = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


def _stored(observed: JsonObject) -> str:
    return unstructured.text(unstructured.child_object(unstructured.metadata(observed), "annotations"), LAST_APPLIED_ANNOTATION)


def _decoded(stored: str) -> JsonObject:
    try:
        last = loads(stored) if stored else NEVER
    except JSONDecodeError:
        return NEVER
    return last if is_object(last) else NEVER


def _annotated(obj: JsonObject, text: str) -> JsonObject:
    metadata = unstructured.metadata(obj)
    annotations = {**unstructured.child_object(metadata, "annotations"), LAST_APPLIED_ANNOTATION: text}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}
