"""Parses a line of a watch into an event: its type and its object."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from metaloop.common.json import JsonObject, is_object
from metaloop.common.kube.body import json_of
from metaloop.common.kube.errors import Unreadable, refusal, status_of

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]

_TYPES = frozenset(get_args(EventType))


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change.

    The object of a BOOKMARK has only a resourceVersion, and perhaps the annotation that ends the initial list.
    """

    type: EventType
    object: JsonObject


def watch_event(line: bytes) -> WatchEvent:
    """The event of a line.

    An ERROR raises its error of kube/errors.py, such as Expired; anything else raises Unreadable.
    """
    raw = json_of(line)
    event_type = raw.get("type") if is_object(raw) else None
    obj = raw.get("object") if is_object(raw) else None
    if isinstance(event_type, str) and event_type in _TYPES and is_object(obj):
        return WatchEvent(cast("EventType", event_type), obj)
    if event_type == "ERROR" and is_object(obj):
        raise refusal(status_of(obj, code=500), request="watch")
    raise Unreadable(f"a watch sent an unknown event: {line[:100]!r}")
