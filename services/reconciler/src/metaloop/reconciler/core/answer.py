"""What a sync hook answered, out of the bytes of its response.

Garbage must never look like an answer: an answer without children deletes the children there are.

Rules
    1. The body is one JSON object. An empty body, HTML, `null` or a list is no answer.
    2. A field of the wrong type is no answer. A null field is as good as an absent one: Go hooks write `"children": null`.
    3. Each child is an object with a kind; the rest of it is free-form.
    4. Strictly read, an unknown or repeated key of the answer itself makes it none; loosely read, unknown keys are only named, so that the shell can log them.
    5. Nesting is bounded: what could not be written again isn't accepted.
    6. A whole number is an integer, however it is written: 2.0 and 2e0 are what some languages make of 2, and no API server takes them for one.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JSONDecodeError, JsonObject, JsonValue, is_object, loads
from metaloop.reconciler.core.model import Answer

KEYS: Final = frozenset({"status", "children", "resyncAfterSeconds", "finalized"})
MAX_NESTING: Final = 128
"""Far more than any kind has, and half of what the JSON writer takes: what is stored comes back inside of a request."""

_WHOLE_FLOAT: Final = re.compile(rb"[:,\[]\s*-?[0-9][0-9.]*?(?:\.0|[eE])")
_EXACT_BELOW: Final = 2.0**53


def sync_answer(body: bytes, *, is_strict: bool) -> Answer:
    """The answer in the `body` of a sync hook's response. Raises InvalidAnswer that names the field at fault."""
    raw = _object_in(body)
    unknown = tuple(sorted(raw.keys() - KEYS))
    if is_strict:
        _refuse_unknown(unknown)
        _refuse_repeated(body)
    return Answer(
        status=_status(raw.get("status")),
        children=_children(raw.get("children")),
        resync_after_seconds=_seconds(raw.get("resyncAfterSeconds")),
        finalized=_flag(raw.get("finalized")),
        unknown_keys=unknown,
    )


def _object_in(body: bytes) -> JsonObject:
    if not body.strip():
        raise InvalidAnswer("", "the response body is empty")
    try:
        raw: JsonValue = loads(body)
    except JSONDecodeError as error:
        raise InvalidAnswer("", f"the response body is no JSON: {error}") from error
    if not is_object(raw):
        raise InvalidAnswer("", f"the response body must be a JSON object, not {_type_name(raw)}")
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


def _refuse_unknown(unknown: Sequence[str]) -> None:
    if unknown:
        raise InvalidAnswer(unknown[0], f"is no field of a sync answer, which has {', '.join(sorted(KEYS))} (read strictly)")


def _refuse_repeated(body: bytes) -> None:
    # orjson keeps the last of repeated keys and doesn't tell. The slow reader does, but is asked only where a repetition is possible at all.
    if b"\\u" not in body and all(body.count(b'"%s"' % key.encode()) <= 1 for key in KEYS):
        return
    seen: set[str] = set()
    for key, _ in json.loads(body, object_pairs_hook=list):
        if key in seen:
            raise InvalidAnswer(key, "appears more than once (read strictly)")
        seen.add(key)


def _status(raw: JsonValue) -> JsonObject | None:
    if raw is None or is_object(raw):
        return raw
    raise InvalidAnswer("status", f"must be an object, not {_type_name(raw)}")


def _children(raw: JsonValue) -> tuple[JsonObject, ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise InvalidAnswer("children", f"must be a list, not {_type_name(raw)}")
    return tuple([_child(item, f"children[{index}]") for index, item in enumerate(raw)])


def _child(raw: JsonValue, field: str) -> JsonObject:
    if not is_object(raw):
        raise InvalidAnswer(field, f"must be an object, not {_type_name(raw)}")
    kind = raw.get("kind")
    if not isinstance(kind, str) or not kind:
        raise InvalidAnswer(f"{field}.kind", "must be a non-empty string")
    return raw


def _seconds(raw: JsonValue) -> float | None:
    if raw is None:
        return None
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        raise InvalidAnswer("resyncAfterSeconds", f"must be a number, not {_type_name(raw)}")
    return float(raw) if raw > 0 else None


def _flag(raw: JsonValue) -> bool:
    if raw is None or isinstance(raw, bool):
        return bool(raw)
    raise InvalidAnswer("finalized", f"must be true or false, not {_type_name(raw)}")


def _type_name(value: JsonValue) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
