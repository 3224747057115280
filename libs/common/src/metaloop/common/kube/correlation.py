"""Decides which Events to write: repeats are counted, similar ones are combined, and the rate per object is limited.

The rules and figures are those of client-go's event correlator, so that users find the Events that they know. No I/O
and no clock: `now` is an argument.

- The same type, reason and message on the same object are one Event with a count.
- After ten different messages of one type and reason within ten minutes, one Event stands for all further ones.
- An object gets at most 25 writes in a burst, and one more every five minutes.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

SIMILAR_MESSAGES = 10
SIMILAR_SECONDS = 600.0
BURST = 25
REFILL_SECONDS = 300.0
REMEMBERED = 4096
"""How many objects and how many Events are remembered. The least recently used are forgotten first."""

_NOT_DNS = re.compile(r"[^a-z0-9.-]")
"""Names of Roles and of some other kinds contain characters that the name of an Event must not have."""
_COMBINED = "(combined from similar events): "

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Subject:
    """The object of an Event. The uid tells it from an earlier object of the same name."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """Something that happened to an object, to be recorded as an Event."""

    subject: Subject
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlated:
    """How to record an occurrence: as the `count`th repetition of the Event `name`."""

    name: str
    message: str
    count: int
    first_seen: float
    last_seen: float


@dataclass(slots=True)
class _Similar:
    messages: set[str] = field(default_factory=set)
    last_seen: float = 0.0


@dataclass(slots=True)
class _Repeated:
    name: str
    first_seen: float
    count: int = 0


@dataclass(slots=True)
class _Bucket:
    filled_at: float
    tokens: float = BURST

    def take(self, now: float) -> bool:
        self.tokens = min(BURST, self.tokens + (now - self.filled_at) / REFILL_SECONDS)
        self.filled_at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class _Recent(Generic[V]):
    """A bounded mapping that drops the least recently used entry."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, V] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        if key in self._entries:
            self._entries.move_to_end(key)
            return self._entries[key]
        if len(self._entries) >= REMEMBERED:
            self._entries.popitem(last=False)
        self._entries[key] = entry = make()
        return entry


class Correlator:
    """Remembers the recent Events."""

    def __init__(self) -> None:
        self._similar: _Recent[_Similar] = _Recent()
        self._repeated: _Recent[_Repeated] = _Recent()
        self._buckets: _Recent[_Bucket] = _Recent()

    def correlate(self, occurrence: Occurrence, *, now: float) -> Correlated | None:
        """How to record an occurrence; None if its object has used up its rate."""
        message = self._combined(occurrence, now)
        alike = message if message == occurrence.message else _COMBINED
        key = (occurrence.subject, occurrence.type, occurrence.reason, alike)
        event = self._repeated.get(key, lambda: _Repeated(event_name(occurrence.subject.name, now), now))
        event.count += 1
        if not self._buckets.get(occurrence.subject, lambda: _Bucket(now)).take(now):
            return None
        return Correlated(name=event.name, message=message, count=event.count, first_seen=event.first_seen, last_seen=now)

    def _combined(self, occurrence: Occurrence, now: float) -> str:
        """The message, with a prefix if it stands for many similar ones."""
        similar = self._similar.get((occurrence.subject, occurrence.type, occurrence.reason), _Similar)
        if now - similar.last_seen > SIMILAR_SECONDS:
            similar.messages.clear()
        similar.last_seen = now
        similar.messages.add(occurrence.message)
        if len(similar.messages) <= SIMILAR_MESSAGES:
            return occurrence.message
        similar.messages.pop()
        return _COMBINED + occurrence.message


def event_name(object_name: str, now: float) -> str:
    """The name of a new Event, as client-go makes it: the name of the object and the time in hexadecimal."""
    stem = _NOT_DNS.sub("-", object_name.lower())[:230].strip(".-") or "object"
    return f"{stem}.{int(now * 1e9):x}"
