"""The JSON object in the body of a hook's response, whatever the hook.

Garbage must never look like an answer.

Rules
    1. The body is one JSON object. An empty body, HTML, `null` or a list is no answer.
    2. Strictly read, an unknown or repeated key of the object itself makes it none; loosely read, unknown keys are only named, so that the shell can log them.
    3. Nesting is bounded: what could not be written again isn't accepted.
    4. A whole number is an integer, however it is written: 2.0 and 2e0 are what some languages make of 2, and no API server takes them for one.
"""

import json
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JSONDecodeError, JsonObject, JsonValue, is_object, loads, type_name

MAX_NESTING: Final = 128
"""Far more than any kind has, and half of what the JSON writer takes: what is stored comes back inside of a request."""

QUOTED_KEYS: Final = 10
QUOTED_LENGTH: Final = 100
"""How much of a webhook's own words is repeated: it may send millions of them."""

_WHOLE_FLOAT: Final = re.compile(rb"[:,\[]\s*-?[0-9][0-9.]*?(?:\.0|[eE])")
_EXACT_BELOW: Final = 2.0**53


@dataclass(frozen=True, slots=True)
class Body:
    """What a body says, and the first of its keys that nobody reads: most likely misspelt."""

    fields: JsonObject
    unknown_keys: tuple[str, ...]


def body_of(wire: bytes, *, keys: AbstractSet[str], is_strict: bool) -> Body:
    """The object in the body of a response that may have `keys`. Raises InvalidAnswer that names what is wrong."""
    raw = _object_in(wire)
    unknown = _unknown_in(raw, keys)
    if is_strict:
        _refuse_unknown(unknown, keys)
        _refuse_repeated(wire, keys)
    return Body(raw, unknown)


def _object_in(body: bytes) -> JsonObject:
    if not body.strip():
        raise InvalidAnswer("", "the response body is empty")
    try:
        raw: JsonValue = loads(body)
    except JSONDecodeError as error:
        raise InvalidAnswer("", f"the response body is no JSON: {error}") from error
    if not is_object(raw):
        raise InvalidAnswer("", f"the response body must be a JSON object, not {type_name(raw)}")
    if body.count(b"{") + body.count(b"[") > MAX_NESTING and _is_deeper_than(MAX_NESTING, raw):
        raise InvalidAnswer("", f"the response body is nested more than {MAX_NESTING} levels deep")
    # Most bodies have no such number, which the pattern tells faster than a walk; it may find one in a string, and costs that walk.
    return _object_with_whole_numbers(raw) if _WHOLE_FLOAT.search(body) else raw


def _object_with_whole_numbers(obj: JsonObject) -> JsonObject:
    return {key: _with_whole_numbers(value) for key, value in obj.items()}


def _with_whole_numbers(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return _object_with_whole_numbers(value)
    if isinstance(value, list):
        return [_with_whole_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_BELOW else value


def _is_deeper_than(levels: int, value: JsonValue) -> bool:
    layer: list[JsonValue] = [value]
    for _ in range(levels):
        layer = [inner for item in layer for inner in _inner_containers(item)]
        if not layer:
            return False
    return True


def _inner_containers(value: JsonValue) -> list[JsonValue]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in inner if isinstance(item, (dict, list))]


def _unknown_in(raw: JsonObject, keys: AbstractSet[str]) -> tuple[str, ...]:
    """The first of the keys that nobody reads, the beginning of each: they are quoted in logs and events."""
    return tuple(key[:QUOTED_LENGTH] for key in sorted(raw.keys() - keys)[:QUOTED_KEYS])


def _refuse_unknown(unknown: Sequence[str], keys: AbstractSet[str]) -> None:
    if unknown:
        raise InvalidAnswer(unknown[0], f"is no field of this answer, which has {', '.join(sorted(keys))} (read strictly)")


def _refuse_repeated(body: bytes, keys: AbstractSet[str]) -> None:
    # orjson keeps the last of repeated keys and doesn't tell. The slow reader does, but is asked only where a repetition is possible at all.
    if b"\\u" not in body and all(body.count(b'"%s"' % key.encode()) <= 1 for key in keys):
        return
    seen: set[str] = set()
    for key, _ in json.loads(body, object_pairs_hook=list):
        if key in seen:
            raise InvalidAnswer(key, "appears more than once (read strictly)")
        seen.add(key)
