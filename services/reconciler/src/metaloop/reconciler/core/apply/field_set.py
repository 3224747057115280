"""Which fields of an object a field manager owns, in the format of the API server (`fieldsV1`).

A field set is a tree. An object has keys `f:<field>`. A list that is a map has keys `k:<the key fields as JSON>`, and
one that is a set has keys `v:<the value as JSON>`. `.` stands for the node itself. A leaf, which is empty, is owned as
a whole: a scalar, an atomic list or object, or a value that was empty when it was applied.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from metaloop.common.json import JsonObject, JsonValue, is_object, loads
from metaloop.common.objects.unstructured import child_object

FieldSet: TypeAlias = JsonObject

_FIELD: Final = "f:"
_KEY: Final = "k:"
_VALUE: Final = "v:"
_CACHED_KEYS: Final = 4096


def field_key(field: str) -> str:
    """The key of a field."""
    return _FIELD + field


def fields_of(owned: FieldSet) -> Iterator[tuple[str, FieldSet]]:
    """The owned fields of an object, each with what is owned below it."""
    return ((key[2:], inner) for key, inner in owned.items() if key.startswith(_FIELD) and is_object(inner))


def elements_of(owned: FieldSet) -> Iterator[tuple[Mapping[str, JsonValue], FieldSet]]:
    """The owned elements of a list map: the key fields of each, and what is owned below it."""
    return ((_key_fields(key), inner) for key, inner in owned.items() if key.startswith(_KEY) and is_object(inner))


def is_set(owned: FieldSet) -> bool:
    """Whether values of a set are owned."""
    return any(key.startswith(_VALUE) for key in owned)


def values_of(owned: FieldSet) -> list[JsonValue]:
    """The owned values of a set."""
    return [loads(key[2:]) for key in owned if key.startswith(_VALUE)]


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in either of two field sets."""
    both = {**one}
    for key, inner in other.items():
        mine = both.get(key)
        both[key] = union(mine, inner) if is_object(mine) and is_object(inner) else inner
    return both


def without(owned: FieldSet, *path: str) -> FieldSet:
    """`owned` without the field at `path`, and without objects that are empty then."""
    key, inner = field_key(path[0]), child_object(owned, field_key(path[0]))
    if key not in owned:
        return owned
    kept = without(inner, *path[1:]) if len(path) > 1 else {}
    others = {name: each for name, each in owned.items() if name != key}
    return {**others, key: kept} if kept else others


def owned_part(value: JsonValue, owned: FieldSet) -> JsonValue:
    """The part of `value` that is owned."""
    if is_object(value) and any(key.startswith(_FIELD) for key in owned):
        return {field: owned_part(value[field], inner) for field, inner in fields_of(owned) if field in value}
    if isinstance(value, list) and any(key.startswith(_KEY) for key in owned):
        return [_with_key(element, key, inner) for key, inner in elements_of(owned) for element in value if is_element(element, key)]
    if isinstance(value, list) and is_set(owned):
        values = values_of(owned)
        return [element for element in value if element in values]
    return value


def is_element(element: JsonValue, key: Mapping[str, JsonValue], defaults: Mapping[str, str] | None = None) -> bool:
    """Whether an element of a list map has this key.

    A key field that the element leaves out has its value in `defaults`. A field without a default matches any value.
    """
    if not is_object(element):
        return False
    for field, value in key.items():
        given = element.get(field)
        if given is None:
            if defaults is not None and field in defaults and defaults[field] != str(value):
                return False
        elif given != value:
            return False
    return True


def _with_key(element: JsonValue, key: Mapping[str, JsonValue], owned: FieldSet) -> JsonValue:
    part = owned_part(element, owned)
    return {**key, **part} if is_object(part) else part


@lru_cache(_CACHED_KEYS)
def _key_fields(key: str) -> Mapping[str, JsonValue]:
    return loads(key[2:])
