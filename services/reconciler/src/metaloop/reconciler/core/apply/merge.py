"""Three-way apply: observed, last applied and desired JSON to the merged JSON.

The hook says what it wants and stays silent about the rest, which belongs to the API server's defaults, to other controllers and to people. What it
*no longer* wants is what it said last time and doesn't say now.

Rules
    1. What is desired is so in the result, also where its type differs from what is observed.
    2. What was applied last and is desired no longer is removed.
    3. What neither the last answer nor this one speaks of stays as it is observed.
    4. Objects merge key by key; so do lists that are maps (see `listmap`), which keep their observed order, new elements last. Sets merge element by element.
       Any other list, and an object that its schema says is atomic, is replaced as a whole: its elements are never merged, since nobody knows which
       of them are the same. What the API server put into it by default is no difference (see `atomic`), as long as the hook asks for the list that it
       asked for before: then it is enough that every element has all that is desired of it. So it is where nothing is remembered of a list.
    5. A desired null takes back, and states nothing. Over an object it removes what was applied last; over anything else it stands as a null, which
       the API server reads as its type has it. That is asked for once: what is found under a null that was applied before is another's, and stays.
       Where nothing is observed there is nothing to take back.
    6. A result that means the same as the observed value (see `equality`) **is** the observed value, the identical object: `merged is observed`
       says that there is nothing to write, and costs no second comparison. So merging a result again changes nothing.
    7. What the API server keeps in another form than it was told (see `schema`) means the same: an amount, an empty list that it dropped.
    8. An empty value in whose place the API server puts one of its own (see `schema`) is as good as none: a Service's `targetPort` of zero.
"""

from enum import Enum
from typing import Final, TypeAlias

from metaloop.common.json import JsonObject, JsonValue
from metaloop.reconciler.core.apply.atomic import is_appended, is_same_atomic
from metaloop.reconciler.core.apply.equality import alike, same
from metaloop.reconciler.core.apply.list_map import Fields, by_key, declared_fields, key_fields
from metaloop.reconciler.core.apply.schema import NO_SCHEMA, Schema


class NeverApplied(Enum):
    """The type of `NEVER_APPLIED`."""

    NEVER_APPLIED = "never applied"


NEVER_APPLIED: Final = NeverApplied.NEVER_APPLIED
"""Stands for what was applied last where nothing was: unlike null, which somebody may have applied."""
Last: TypeAlias = JsonValue | NeverApplied


def merge(observed: JsonValue, last: Last, desired: JsonValue, schema: Schema = NO_SCHEMA) -> JsonValue:
    """The value that `desired` makes of `observed`, given what was applied `last`; the very `observed` where nothing changes."""
    if isinstance(desired, dict) and isinstance(observed, dict):
        if schema.is_atomic and (last is not NEVER_APPLIED or not desired):
            return observed if is_same_atomic(desired, observed, schema) else desired
        return merge_objects(observed, last if isinstance(last, dict) else {}, desired, schema)
    if isinstance(desired, list) and isinstance(observed, list):
        return _merge_lists(observed, last, desired, schema)
    if desired is None:
        return _take_back(observed, last, schema)
    return observed if alike(observed, desired, schema) else desired


def merge_objects(observed: JsonObject, last: JsonObject, desired: JsonObject, schema: Schema = NO_SCHEMA) -> JsonObject:
    """As `merge`, of objects."""
    result = observed
    fields, rest = schema.fields, schema.rest
    for key, before in last.items():
        if key not in desired and key in observed and before is not None and (before or not fields.get(key, rest).fills_empty):
            result = _copied_once(result, observed)
            del result[key]
    for key, wanted in desired.items():
        inner = fields.get(key, rest)
        if not wanted and inner.fills_empty:
            if not last.get(key) or key not in observed:
                continue
            result = _copied_once(result, observed)
            del result[key]
            continue
        if key in observed:
            merged = merge(observed[key], last.get(key, NEVER_APPLIED), wanted, inner)
            if merged is observed[key]:
                continue
        elif wanted is None or (inner.drops_empty and not wanted):
            continue
        else:
            merged = wanted
        result = _copied_once(result, observed)
        result[key] = merged
    return result


def _copied_once(result: JsonObject, observed: JsonObject) -> JsonObject:
    return dict(observed) if result is observed else result


def _take_back(observed: JsonValue, last: Last, schema: Schema) -> JsonValue:
    if last is None:
        return observed
    if isinstance(observed, dict):
        return merge_objects(observed, last if isinstance(last, dict) else {}, {}, schema)
    return None


def _merge_lists(observed: list[JsonValue], last: Last, desired: list[JsonValue], schema: Schema) -> list[JsonValue]:
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


def _merge_unkeyed(observed: list[JsonValue], last: Last, desired: list[JsonValue], schema: Schema) -> list[JsonValue]:
    if same(observed, desired):
        return observed
    if last is not NEVER_APPLIED and schema.list_type == "atomic":
        return observed if is_same_atomic(desired, observed, schema) else desired
    is_asked_for_again = last is NEVER_APPLIED or same(last, desired)
    return observed if is_asked_for_again and _has_all_of(observed, desired, schema.items) else desired


def _has_all_of(observed: list[JsonValue], desired: list[JsonValue], schema: Schema) -> bool:
    """Whether each element has all that is desired of it, in the same order. Others' additions to an element are no difference."""
    kept = [element for element in observed if not is_appended(element, to=desired)]
    return len(kept) == len(desired) and all(
        merge(each, wanted, wanted, schema) is each for each, wanted in zip(kept, desired, strict=True)
    )


def _merge_sets(observed: list[JsonValue], last: list[JsonValue], desired: list[JsonValue]) -> list[JsonValue]:
    kept = [element for element in observed if element in desired or element not in last]
    added = [element for element in desired if element not in observed]
    return [*kept, *added] if added or len(kept) != len(observed) else observed


def _merge_maps(
    observed: list[JsonValue], last: list[JsonValue], desired: list[JsonValue], *, fields: Fields, schema: Schema
) -> list[JsonValue]:
    if schema.list_type == "map":
        before, wanted, there = (by_key(version, fields, schema.key_defaults) for version in (last, desired, observed))
    else:
        before, wanted, there = (by_key(version, fields) for version in (last, desired, observed))
    result: list[JsonValue] = []
    for key, element in there.items():
        if key in wanted:
            result.append(merge_objects(element, before.get(key, {}), wanted.pop(key), schema.items))
        elif key not in before:
            result.append(element)
    result.extend(wanted.values())
    return _identical_if_unchanged(result, observed)


def _identical_if_unchanged(result: list[JsonValue], observed: list[JsonValue]) -> list[JsonValue]:
    unchanged = len(result) == len(observed) and all(map(_is, result, observed))
    return observed if unchanged else result


def _is(left: JsonValue, right: JsonValue) -> bool:
    return left is right
