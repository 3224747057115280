"""What a child would look like once applied, and the annotation that remembers what was.

The annotation has Metacontroller's name and content: the compact JSON, with sorted keys, of the child as the hook wanted it, so a cluster can move
from the one to the other and back without a write.

Rules
    1. What belongs to the API server is desired by nobody: `status` and the metadata that it keeps. They stay as observed, whatever an answer says.
    2. What is applied is the `configuration`, which is free of what a hook only echoes: that changes with each write, so remembering it would cause the next one.
       Explicit nulls and an empty status, which Go's encoder makes of any typed object, are remembered, as Metacontroller does.
    3. An annotation that means the same is left as it is, byte by byte. One that can't be read counts as none, and is written anew.
    4. Labels, annotations, owners and finalizers that the hook no longer mentions at all are given up one by one: those of others stay.
    5. Who controls a child is not a hook's to say: a reference to the parent in its answer (an echo of the child, or its own idea of it) changes nothing.
"""

import re
from dataclasses import dataclass
from typing import Final

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JSONDecodeError, JsonObject, JsonValue, is_array, is_object, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref, owner_references, reference_to
from metaloop.reconciler.core.apply.configuration import (
    as_stored,
    with_whole_numbers,
    without_echo,
    without_stale_rolling_update,
    without_system_fields,
)
from metaloop.reconciler.core.apply.equality import same
from metaloop.reconciler.core.apply.go_json import escaped_json, go_json
from metaloop.reconciler.core.apply.merge import NEVER_APPLIED, NeverApplied, merge_objects
from metaloop.reconciler.core.apply.schema import NO_SCHEMA, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyResult:
    """What became of an observed child by applying what is desired: the object to write, and what about it is new."""

    obj: JsonObject
    is_changed: bool
    """Whether anything but the annotation differs from what was observed."""
    is_recorded: bool
    """Whether the observed annotation already says what is desired."""


def new_child(desired: JsonObject, *, parent: JsonObject) -> JsonObject:
    """The object to create for `desired`: controlled by `parent`, and remembering what was applied."""
    configuration, text = _configuration_and_text(desired)
    return _annotated(controlled_by(parent, configuration), text)


def applied_configuration(desired: JsonObject) -> JsonObject:
    """What is applied of `desired`."""
    return _configuration_and_text(desired)[0]


def controlled_by(parent: JsonObject, configuration: JsonObject) -> JsonObject:
    """`configuration` with `parent` as its controller, besides the owners that it names itself."""
    others = [reference for reference in owner_references(configuration) if unstructured.text(reference, "uid") != unstructured.uid(parent)]
    metadata: JsonObject = {**unstructured.metadata(configuration), "ownerReferences": [*others, reference_to(parent)]}
    return {**configuration, "metadata": metadata}


def applied_to(observed: JsonObject, desired: JsonObject, *, schema: Schema = NO_SCHEMA, before: JsonObject | None = None) -> ApplyResult:
    """What applying `desired` makes of `observed`; `before` is what was applied last where no annotation says so."""
    configuration, text = _configuration_and_text(desired)
    stored = _stored(observed)
    last = configuration if text == stored else _decoded(stored)
    is_recorded = last is configuration or (last is not NEVER_APPLIED and same(last, configuration))
    last_own = _own((before or {}) if last is NEVER_APPLIED else last, observed)
    merged = merge_objects(
        without_stale_rolling_update(observed, configuration), last_own, _giving_up_singly(_own(configuration, observed), last_own), schema
    )
    return ApplyResult(
        obj=merged if is_recorded else _annotated(merged, text),
        is_changed=merged is not observed,
        is_recorded=is_recorded,
    )


def is_annotated(observed: JsonObject) -> bool:
    """Whether `observed` remembers what was applied."""
    return bool(_stored(observed))


def _own(obj: JsonObject, observed: JsonObject) -> JsonObject:
    kept = as_stored(without_system_fields(obj))
    metadata = unstructured.metadata(kept)
    named, controller = metadata.get("ownerReferences"), controller_ref(observed)
    if controller is None or not is_array(named):
        return kept
    others = [each for each in named if not (is_object(each) and each.get("uid") == controller.uid)]
    return {**kept, "metadata": {**metadata, "ownerReferences": [*others]}}


def _giving_up_singly(desired: JsonObject, last: JsonObject) -> JsonObject:
    metadata, before = unstructured.metadata(desired), unstructured.metadata(last)
    maps: JsonObject = {key: {} for key in ("labels", "annotations") if key not in metadata and key in before}
    lists: JsonObject = {key: [] for key in ("ownerReferences", "finalizers") if metadata.get(key) is None and before.get(key) is not None}
    return {**desired, "metadata": {**metadata, **maps, **lists}} if maps or lists else desired


def _configuration_and_text(desired: JsonObject) -> tuple[JsonObject, str]:
    """What to apply, and the annotation's text of it: as Go's encoder writes it, which escapes what could end an HTML script."""
    configuration = without_echo(desired)
    text = escaped_json(_remembered(configuration))
    if not _MAYBE_FLOAT.search(text):
        return configuration, text
    whole = with_whole_numbers(configuration)
    return (whole, go_json(_remembered(whole))) if is_object(whole) else (configuration, text)


def _remembered(configuration: JsonObject) -> JsonObject:
    return {key: value for key, value in configuration.items() if key != "status"} if configuration.get("status") else configuration


_MAYBE_FLOAT: Final = re.compile(r"[:,\[]-?\d+(?:\.\d|[eE])")
"""Where a number with a fraction or an exponent may stand; a text that looks the same only costs a second look."""


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
