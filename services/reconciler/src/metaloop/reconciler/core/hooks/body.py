"""Reads the JSON object in the body of a hook's response.

Garbage must never look like an answer.

Rules
    1. The body is one JSON object. An empty body, HTML, `null` or a list is invalid.
    2. In strict mode, an unknown or repeated key of the top-level object makes the body invalid. In loose mode, unknown
       keys are only returned, so that the shell can log them.
    3. Nesting is bounded. What could not be written again is not accepted.
    4. A whole number is an integer, however it is written. Some languages write 2 as 2.0 or 2e0, which no API server
       accepts as an integer.
"""

import json
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JSONDecodeError, JsonObject, JsonValue, is_object, loads, type_name
from metaloop.reconciler.core.apply.configuration import with_whole_numbers
from metaloop.reconciler.core.hooks.elements import BodyParts, split_at

MAX_NESTING: Final = 128
"""Far deeper than any kind, and half of what the JSON writer supports: what is stored comes back inside a request."""

QUOTED_KEYS: Final = 10
QUOTED_LENGTH: Final = 100
"""How much of a body is quoted in messages. A webhook may send millions of keys."""

SPLIT_BYTES: Final = 24 * 2**20
"""A larger body is parsed element by element: the parser lets nothing else run in this process meanwhile."""

_WHOLE_FLOAT: Final = re.compile(rb"[:,\[]\s*-?[0-9][0-9.]*?(?:\.0|[eE])")
_LONG_BYTES: Final = 4096
"""In a longer body, which is mostly long strings, looking at each value is faster than a search."""
_EXACT_BELOW: Final = 2.0**53
"""Every whole number below this is exactly a float. A larger float may differ from what the hook wrote."""


@dataclass(frozen=True, slots=True)
class Body:
    """The fields of a body, and the first of its keys that no field has: most likely misspelt."""

    fields: JsonObject
    unknown_keys: tuple[str, ...]


def body_of(wire: bytes, *, keys: AbstractSet[str], is_strict: bool, elements: str = "") -> Body:
    """The object in the body of a response that may have `keys`. Raises InvalidAnswer, which says what is wrong.

    The field `elements`, if there is one, is the list that makes a body large.
    """
    split = split_at(wire, elements) if elements and len(wire) > SPLIT_BYTES else None
    raw = _object_in(wire, split)
    unknown = _unknown_in(raw, keys)
    if is_strict:
        _check_unknown(unknown, keys)
        _check_repeated(split.frame if split is not None else wire, keys)
    return Body(raw, unknown)


def check_misspelt(body: Body, key: str, *, otherwise: str) -> None:
    """Raises InvalidAnswer if the body has an unknown key in place of `key`. Says what would follow `otherwise`."""
    if key in body.fields or not body.unknown_keys:
        return
    [unknown] = get_close_matches(key, body.unknown_keys, n=1, cutoff=0.0)
    raise InvalidAnswer(
        unknown, f"is not a field of this answer, which lacks {key}: {otherwise}; if that is meant, answer with an empty list"
    )


def _object_in(body: bytes, split: BodyParts | None) -> JsonObject:
    if not body.strip():
        raise InvalidAnswer("", "the response body is empty")
    try:
        raw: JsonValue = loads(body) if split is None else split.joined()
    except JSONDecodeError as error:
        raise InvalidAnswer("", f"the response body is not JSON: {error}") from error
    if not is_object(raw):
        raise InvalidAnswer("", f"the response body must be a JSON object, not {type_name(raw)}")
    if body.count(b"{") + body.count(b"[") > MAX_NESTING and _is_deeper_than(MAX_NESTING, raw):
        raise InvalidAnswer("", f"the response body is nested more than {MAX_NESTING} levels deep")
    # Few short bodies have such a number, and a search is faster than a walk. A match in a string only costs the walk.
    may_have_floats = len(body) > _LONG_BYTES or _WHOLE_FLOAT.search(body)
    whole = with_whole_numbers(raw, below=_EXACT_BELOW) if may_have_floats else raw
    return whole if is_object(whole) else raw


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
    """The first of the keys that no field has, each cut to what logs and events quote."""
    return tuple(key[:QUOTED_LENGTH] for key in sorted(raw.keys() - keys)[:QUOTED_KEYS])


def _check_unknown(unknown: Sequence[str], keys: AbstractSet[str]) -> None:
    if unknown:
        raise InvalidAnswer(unknown[0], f"is not a field of this answer, which has {', '.join(sorted(keys))} (strict mode)")


def _check_repeated(body: bytes, keys: AbstractSet[str]) -> None:
    # orjson keeps the last of repeated keys silently. The slow reader finds them, but runs only if there may be any.
    if b"\\u" not in body and all(body.count(b'"%s"' % key.encode()) <= 1 for key in keys):
        return
    seen: set[str] = set()
    for key, _ in json.loads(body, object_pairs_hook=list):
        if key in seen:
            raise InvalidAnswer(key, "appears more than once (strict mode)")
        seen.add(key)
