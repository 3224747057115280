"""JSON as typed values. Only this module chooses the parser and the serializer."""

from typing import TypeAlias, TypeGuard

import orjson

JsonValue: TypeAlias = str | int | float | bool | list["JsonValue"] | dict[str, "JsonValue"] | None
JsonObject: TypeAlias = dict[str, JsonValue]

loads = orjson.loads
JSONDecodeError = orjson.JSONDecodeError


def dumps(value: object) -> bytes:
    """Compact JSON of `value`; an `orjson.Fragment` in it is embedded unparsed."""
    return orjson.dumps(value)


def dumps_sorted(value: object) -> bytes:
    """Compact JSON with sorted keys: equal values give equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether `value` is a JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> "TypeGuard[list[JsonValue]]":
    """Whether `value` is a JSON array."""
    return isinstance(value, list)


def type_name(value: JsonValue) -> str:
    """The type of a value, for messages."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
