"""What the API server sends, as JSON."""

from metaloop.common.json import JSONDecodeError, JsonObject, JsonValue, is_object, loads
from metaloop.common.kube.errors import Unreadable

_SHOWN_BYTES = 100


def json_of(raw: bytes) -> JsonValue:
    """The value of a document, what isn't UTF-8 in it replaced as all clients in Go do. Raises Unreadable."""
    try:
        return loads(raw)
    except JSONDecodeError:
        pass
    try:
        return loads(raw.decode(errors="replace"))
    except JSONDecodeError as problem:
        raise Unreadable(f"the API server sent what is no JSON: {raw[:_SHOWN_BYTES]!r}") from problem


def object_of(raw: bytes) -> JsonObject:
    """The object of a document. Raises Unreadable where it is none."""
    value = json_of(raw)
    if is_object(value):
        return value
    raise Unreadable(f"the API server sent what is no object: {raw[:_SHOWN_BYTES]!r}")
