"""Applies a desired child to the observed one, and records what was applied in an annotation.

The annotation has Metacontroller's name and content: the compact JSON, with sorted keys, of the child as the hook
answered it. A cluster can move from one to the other and back without a write.

Rules
    1. `status` and the API server's own metadata are never part of the configuration. They stay as observed, whatever
       an answer says.
    2. The annotation records the `configuration`, which contains no echo of the API server's metadata: those change
       with each write, and recording them would cause the next one. Explicit nulls and an empty status, which Go
       encodes for any typed object, are recorded, as Metacontroller does.
    3. An annotation that means the same stays as it is, byte by byte. One that can't be read counts as none, and is
       written again.
    4. When the hook no longer mentions labels, annotations, owners or finalizers at all, only the entries that it
       applied last are removed. Those of others stay.
    5. A hook does not say who controls a child. A reference to the child's controller in an answer, be it an echo or
       the hook's own, changes nothing.
"""

import re
from dataclasses import dataclass
from typing import Final

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JSONDecodeError, JsonObject, JsonValue, is_array, is_object, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref, owner_references, reference_to
from metaloop.reconciler.core.apply.configuration import (
    INT64_LIMIT,
    as_stored,
    has_float,
    with_whole_numbers,
    without_echo,
    without_stale_rolling_update,
    without_system_fields,
)
from metaloop.reconciler.core.apply.equality import same
from metaloop.reconciler.core.apply.go_json import escaped_json, go_json
from metaloop.reconciler.core.apply.merge import NEVER_APPLIED, NeverApplied, merge_objects
from metaloop.reconciler.core.apply.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyResult:
    """What applying a configuration to an observed child comes to: the object to write, and what is new about it."""

    obj: JsonObject
    is_changed: bool
    """Whether anything differs from what was observed, apart from the record of what was applied."""
    is_recorded: bool
    """Whether the observed child already records this configuration: in its annotation, or in `managedFields`."""


def new_child(desired: JsonObject, *, parent: JsonObject) -> JsonObject:
    """The object to create for `desired`: controlled by `parent`, and annotated with what was applied."""
    configuration, text = _configuration_and_text(desired)
    return _annotated(controlled_by(parent, configuration), text)


def applied_configuration(desired: JsonObject) -> JsonObject:
    """The configuration that `desired` stands for."""
    return _configuration_and_text(desired)[0]


def controlled_by(parent: JsonObject, obj: JsonObject) -> JsonObject:
    """`obj` with `parent` as its controller, beside its other owners."""
    others = [reference for reference in owner_references(obj) if unstructured.text(reference, "uid") != unstructured.uid(parent)]
    metadata: JsonObject = {**unstructured.metadata(obj), "ownerReferences": [*others, reference_to(parent)]}
    return {**obj, "metadata": metadata}


def applied_to(observed: JsonObject, desired: JsonObject, *, schema: Schema, last_applied: JsonObject | None = None) -> ApplyResult:
    """`observed` with `desired` applied. `last_applied` is used where no annotation says what was applied last."""
    configuration, text = _configuration_and_text(desired)
    stored = _stored(observed)
    last = configuration if text == stored else _decoded(stored)
    is_recorded = last is configuration or (last is not NEVER_APPLIED and same(last, configuration))
    own = _own(configuration, observed)
    own_last = own if last is configuration else _own((last_applied or {}) if last is NEVER_APPLIED else last, observed)
    own_desired = _with_emptied_collections(own, own_last)
    merged = merge_objects(without_stale_rolling_update(observed, configuration), own_last, own_desired, schema)
    return ApplyResult(
        obj=merged if is_recorded else _annotated(merged, text),
        is_changed=merged is not observed,
        is_recorded=is_recorded,
    )


def is_annotated(observed: JsonObject) -> bool:
    """Whether `observed` has the annotation that records what was applied."""
    return bool(_stored(observed))


def _own(obj: JsonObject, observed: JsonObject) -> JsonObject:
    """The part of `obj` that is the hook's to say: no system fields, and not who controls the child."""
    kept = as_stored(without_system_fields(obj))
    metadata = unstructured.metadata(kept)
    references = metadata.get("ownerReferences")
    if not is_array(references):
        return kept
    controller = controller_ref(observed)
    if controller is None:
        return kept
    others = [each for each in references if not (is_object(each) and each.get("uid") == controller.uid)]
    return {**kept, "metadata": {**metadata, "ownerReferences": [*others]}}


def _with_emptied_collections(desired: JsonObject, last: JsonObject) -> JsonObject:
    """`desired` with the collections that it no longer mentions as empty ones: their entries are removed one by one."""
    metadata, before = unstructured.metadata(desired), unstructured.metadata(last)
    maps: JsonObject = {key: {} for key in ("labels", "annotations") if key not in metadata and key in before}
    lists: JsonObject = {key: [] for key in ("ownerReferences", "finalizers") if metadata.get(key) is None and before.get(key) is not None}
    return {**desired, "metadata": {**metadata, **maps, **lists}} if maps or lists else desired


def _configuration_and_text(desired: JsonObject) -> tuple[JsonObject, str]:
    """The configuration, and the text of the annotation that records it."""
    configuration = without_echo(desired)
    text = escaped_json(_recorded(configuration))
    if not (has_float(configuration) if len(text) > _LONG_TEXT else _MAYBE_FLOAT.search(text)):
        return configuration, text
    whole = with_whole_numbers(configuration, below=INT64_LIMIT)
    return (whole, go_json(_recorded(whole))) if is_object(whole) else (configuration, text)


def _recorded(configuration: JsonObject) -> JsonObject:
    return {key: value for key, value in configuration.items() if key != "status"} if configuration.get("status") else configuration


_MAYBE_FLOAT: Final = re.compile(r"[:,\[]-?\d+(?:\.\d|[eE])")
"""Matches what may be a number with a fraction or an exponent. A string that looks like one only costs time."""
_LONG_TEXT: Final = 2048
"""A longer text is mostly long strings: looking at each value is faster than a search."""


def _stored(observed: JsonObject) -> str:
    return unstructured.text(unstructured.child_object(unstructured.metadata(observed), "annotations"), LAST_APPLIED_ANNOTATION)


def _decoded(stored: str) -> JsonObject | NeverApplied:
    try:
        last: JsonValue = loads(stored) if stored else None
    except JSONDecodeError:
        return NEVER_APPLIED
    return last if is_object(last) else NEVER_APPLIED


def _annotated(obj: JsonObject, text: str) -> JsonObject:
    metadata = unstructured.metadata(obj)
    annotations = {**unstructured.child_object(metadata, "annotations"), LAST_APPLIED_ANNOTATION: text}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}
