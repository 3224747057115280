"""JSON text as Go's encoder writes it, which Metacontroller hashes: compact, sorted keys, what could end an HTML script escaped."""

from decimal import Decimal
from typing import Final

from orjson import Fragment

from metaloop.common.json import JsonValue, dumps_sorted

_ESCAPES: Final = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))
_SMALLEST_PLAIN, _LARGEST_PLAIN = 1e-6, 1e21
"""Between these Go writes a float without an exponent."""


def go_json(value: JsonValue) -> str:
    """The text of `value`, byte for byte as Go's `encoding/json` makes it of an unstructured object."""
    return escaped_json(_with_go_floats(value))


def escaped_json(value: object) -> str:
    """As `go_json`, of a value without floats: looking for those is what costs time."""
    text = dumps_sorted(value).decode()
    for char, escape in _ESCAPES:
        text = text.replace(char, escape)
    return text


def _with_go_floats(value: object) -> object:
    if isinstance(value, float):
        return Fragment(_go_float(value))
    if isinstance(value, dict):
        return {key: _with_go_floats(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_go_floats(inner) for inner in value]
    return value


def _go_float(value: float) -> str:
    if value and not _SMALLEST_PLAIN <= abs(value) < _LARGEST_PLAIN:
        return repr(value).replace("e-0", "e-")
    return format(Decimal(repr(value)), "f").removesuffix(".0")
