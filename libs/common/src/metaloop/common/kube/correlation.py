"""Which Events are worth a write: repeats are counted, floods of similar ones are combined, and what is left is limited in rate.

The rules and figures are those of client-go's correlator, so that users find the Events that they know. No I/O, no clock: `now` is given.

- The same type, reason and message on the same object: one Event, with a count.
- More than ten messages that differ in nothing else within ten minutes: from then on one Event stands for all of them.
- At most 25 writes for an object in a row, and one more each five minutes.
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
"""How many objects, and how many Events, are remembered; the longest unused are forgotten first."""

_NOT_DNS = re.compile(r"[^a-z0-9.-]")
"""Roles and some others have names that no Event can have."""
_COMBINED = "(combined from similar events): "

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Subject:
    """Which object, in which version of its life."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Something that somebody wants to be told of an object."""

    subject: Subject
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlated:
    """How a sighting is told: as the `count`th of the Event `name`."""

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
    """A mapping that forgets what was not asked for in the longest time."""

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
    """What was told lately."""

    def __init__(self) -> None:
        self._similar: _Recent[_Similar] = _Recent()
        self._repeated: _Recent[_Repeated] = _Recent()
        self._buckets: _Recent[_Bucket] = _Recent()

    def correlate(self, sighting: Sighting, *, now: float) -> Correlated | None:
        """How to tell of a sighting; None if its object had its share of Events."""
        message = self._combined(sighting, now)
        alike = message if message == sighting.message else _COMBINED
        key = (sighting.subject, sighting.type, sighting.reason, alike)
        event = self._repeated.get(key, lambda: _Repeated(event_name(sighting.subject.name, now), now))
        event.count += 1
        if not self._buckets.get(sighting.subject, lambda: _Bucket(now)).take(now):
            return None
        return Correlated(name=event.name, message=message, count=event.count, first_seen=event.first_seen, last_seen=now)

    def _combined(self, sighting: Sighting, now: float) -> str:
        """The message, marked as one of many if it is."""
        similar = self._similar.get((sighting.subject, sighting.type, sighting.reason), _Similar)
        if now - similar.last_seen > SIMILAR_SECONDS:
            similar.messages.clear()
        similar.last_seen = now
        similar.messages.add(sighting.message)
        if len(similar.messages) <= SIMILAR_MESSAGES:
            return sighting.message
        similar.messages.pop()
        return _COMBINED + sighting.message


def event_name(object_name: str, now: float) -> str:
    """The name of a new Event, as kubectl and its users know them: the object's, and the moment in hexadecimal."""
    stem = _NOT_DNS.sub("-", object_name.lower())[:230].strip(".-") or "object"
    return f"{stem}.{int(now * 1e9):x}"
