"""One line of a watch as a value: what happened, and the object that it happened to."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from metaloop.common.json import JsonObject, is_object
from metaloop.common.kube.body import json_of
from metaloop.common.kube.errors import Unreadable, refusal, status_of

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]

_TYPES = frozenset(get_args(EventType))


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. The object of a BOOKMARK holds nothing but a resourceVersion, and perhaps the mark that the first list is over."""

    type: EventType
    object: JsonObject


def watch_event(line: bytes) -> WatchEvent:
    """The event of a line. Raises Expired and others of kube/errors.py for an ERROR, Unreadable for what is no event."""
    raw = json_of(line)
    event_type = raw.get("type") if is_object(raw) else None
    obj = raw.get("object") if is_object(raw) else None
    if isinstance(event_type, str) and event_type in _TYPES and is_object(obj):
        return WatchEvent(cast("EventType", event_type), obj)
    if event_type == "ERROR" and is_object(obj):
        raise refusal(status_of(obj, code=500), request="watch")
    raise Unreadable(f"a watch sent an unknown event: {line[:100]!r}")
