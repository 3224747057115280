"""Parses the API server's answers as JSON."""

from metaloop.common.json import JSONDecodeError, JsonObject, JsonValue, is_object, loads
from metaloop.common.kube.errors import Unreadable

_SHOWN_BYTES = 100


def json_of(raw: bytes) -> JsonValue:
    """The value of a JSON document. Bytes that are not UTF-8 are replaced, as Go's clients do. Raises Unreadable."""
    try:
        return loads(raw)
    except JSONDecodeError:
        pass
    try:
        return loads(raw.decode(errors="replace"))
    except JSONDecodeError as problem:
        raise Unreadable(f"the API server did not send JSON: {raw[:_SHOWN_BYTES]!r}") from problem


def object_of(raw: bytes) -> JsonObject:
    """The object in a JSON document. Raises Unreadable for any other value."""
    value = json_of(raw)
    if is_object(value):
        return value
    raise Unreadable(f"the API server did not send an object: {raw[:_SHOWN_BYTES]!r}")
