"""Three-way merge: from observed, last applied and desired JSON to the merged JSON.

A hook states what it desires. What it does not mention belongs to others: to the API server's defaults, to other
controllers, to users. What the hook mentioned in its last answer and does not mention in this one is removed.

Rules
    1. A desired value is in the result, even where its type differs from the observed one.
    2. A value that was applied last and is no longer desired is removed.
    3. A value that neither the last answer nor this one mentions stays as observed.
    4. Objects merge key by key, and so do lists that are maps (see `list_map`). These keep their observed order; new
       elements come last. Sets merge element by element. Any other list is replaced as a whole, and so is an object
       whose schema says that it is atomic. Their elements are never merged, since nobody knows which of them are the
       same. Defaults that the API server set inside them are not a difference (see `atomic`) while the hook desires
       what it desired last time: each element then only needs all that is desired of it. The same holds if nothing was
       applied before.
    5. A desired null retracts a value. It removes what was applied last from an object; any other value it replaces by
       a null, which the API server interprets by the field's type. It does so once: a value that is found where a null
       was applied last belongs to somebody else, and stays. Where nothing is observed, there is nothing to retract.
    6. A result that means the same as the observed value (see `equality`) **is** the observed value, the identical
       object. `merged is observed` says that there is nothing to write and costs no second comparison. Merging a
       result again changes nothing.
    7. A value that the API server stores in another form (see `schema`) means the same: a quantity, an empty list that
       it dropped.
    8. An empty value that the API server replaces by its own (see `schema`) counts as absent: a Service's `targetPort`
       of zero.
"""

from enum import Enum
from typing import Final, TypeAlias

from metaloop.common.json import JsonObject, JsonValue
from metaloop.reconciler.core.apply.atomic import is_appended, is_same_atomic
from metaloop.reconciler.core.apply.equality import alike, same
from metaloop.reconciler.core.apply.list_map import Fields, by_key, declared_fields, key_fields
from metaloop.reconciler.core.apply.schema import Schema


class NeverApplied(Enum):
    """The type of `NEVER_APPLIED`."""

    NEVER_APPLIED = "never applied"


NEVER_APPLIED: Final = NeverApplied.NEVER_APPLIED
"""The last applied value where none was applied. Null is no substitute: a hook may have applied a null."""
LastApplied: TypeAlias = JsonValue | NeverApplied


def merge(observed: JsonValue, last: LastApplied, desired: JsonValue, schema: Schema) -> JsonValue:
    """`observed` with `desired` applied, given what was applied `last`. The very `observed` if nothing changes."""
    if isinstance(desired, dict) and isinstance(observed, dict):
        if schema.is_atomic and (last is not NEVER_APPLIED or not desired):
            return observed if is_same_atomic(desired, observed, schema) else desired
        return merge_objects(observed, last if isinstance(last, dict) else {}, desired, schema)
    if isinstance(desired, list) and isinstance(observed, list):
        return _merge_lists(observed, last, desired, schema)
    if desired is None:
        return _retract(observed, last, schema)
    return observed if alike(observed, desired, schema) else desired


def merge_objects(observed: JsonObject, last: JsonObject, desired: JsonObject, schema: Schema) -> JsonObject:
    """As `merge`, for objects."""
    result = observed
    fields, additional = schema.fields, schema.additional
    for key, before in last.items():
        if key not in desired and key in observed and before is not None and (before or not fields.get(key, additional).fills_empty):
            result = _copied_once(result, observed)
            del result[key]
    for key, value in desired.items():
        inner = fields.get(key, additional)
        if not value and inner.fills_empty:
            if not last.get(key) or key not in observed:
                continue
            result = _copied_once(result, observed)
            del result[key]
            continue
        if key in observed:
            present = observed[key]
            if isinstance(value, str) and present == value:
                continue  # most values are strings, and most of them are in place
            merged = merge(present, last.get(key, NEVER_APPLIED), value, inner)
            if merged is present:
                continue
        elif value is None or (inner.drops_empty and not value):
            continue
        else:
            merged = value
        result = _copied_once(result, observed)
        result[key] = merged
    return result


def _copied_once(result: JsonObject, observed: JsonObject) -> JsonObject:
    return dict(observed) if result is observed else result


def _retract(observed: JsonValue, last: LastApplied, schema: Schema) -> JsonValue:
    if last is None:
        return observed
    if isinstance(observed, dict):
        return merge_objects(observed, last if isinstance(last, dict) else {}, {}, schema)
    return None


def _merge_lists(observed: list[JsonValue], last: LastApplied, desired: list[JsonValue], schema: Schema) -> list[JsonValue]:
    before = last if isinstance(last, list) else []
    if schema.list_type == "set":
        return _merge_sets(observed, before, desired)
    fields = None
    if schema.list_type == "map":
        fields = declared_fields(schema, observed, before, desired)
    elif schema.list_type == "unknown":
        fields = key_fields(observed, before, desired)
    if fields is not None:
        return _merge_maps(observed, before, desired, fields=fields, schema=schema)
    return _merge_unkeyed(observed, last, desired, schema)


def _merge_unkeyed(observed: list[JsonValue], last: LastApplied, desired: list[JsonValue], schema: Schema) -> list[JsonValue]:
    if same(observed, desired):
        return observed
    if last is not NEVER_APPLIED and schema.list_type == "atomic":
        return observed if is_same_atomic(desired, observed, schema) else desired
    is_unchanged = last is NEVER_APPLIED or same(last, desired)
    return observed if is_unchanged and _has_all_of(observed, desired, schema.items) else desired


def _has_all_of(observed: list[JsonValue], desired: list[JsonValue], schema: Schema) -> bool:
    """Whether each observed element has all that is desired of it, in the same order. It may have more."""
    own = [element for element in observed if not is_appended(element, to=desired)]
    return len(own) == len(desired) and all(merge(each, value, value, schema) is each for each, value in zip(own, desired, strict=True))


def _merge_sets(observed: list[JsonValue], last: list[JsonValue], desired: list[JsonValue]) -> list[JsonValue]:
    kept = [element for element in observed if element in desired or element not in last]
    added = [element for element in desired if element not in observed]
    return [*kept, *added] if added or len(kept) != len(observed) else observed


def _merge_maps(
    observed: list[JsonValue], last: list[JsonValue], desired: list[JsonValue], *, fields: Fields, schema: Schema
) -> list[JsonValue]:
    if schema.list_type == "map":
        before, remaining, present = (by_key(version, fields, schema.key_defaults) for version in (last, desired, observed))
    else:
        before, remaining, present = (by_key(version, fields) for version in (last, desired, observed))
    result: list[JsonValue] = []
    for key, element in present.items():
        if key in remaining:
            result.append(merge_objects(element, before.get(key, {}), remaining.pop(key), schema.items))
        elif key not in before:
            result.append(element)
    result.extend(remaining.values())
    return _identical_if_unchanged(result, observed)


def _identical_if_unchanged(result: list[JsonValue], observed: list[JsonValue]) -> list[JsonValue]:
    unchanged = len(result) == len(observed) and all(map(_is, result, observed))
    return observed if unchanged else result


def _is(left: JsonValue, right: JsonValue) -> bool:
    return left is right
