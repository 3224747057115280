"""Which Events are sent as new, which as one more of an earlier one, and which not at all: client-go's correlator, as a pure core.

- the same again: (object, type, reason, message) as before: the earlier Event counts one more
- too many alike: more than ten of (object, type, reason) within ten minutes: the next are combined into one
- too many at all: a bucket of 25 for each object, refilled by one in 300 s; an empty one drops the Event
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar
from uuid import uuid4

_ALIKE_LIMIT = 10
_ALIKE_SECONDS = 600.0
_BUCKET_SIZE = 25.0
_REFILL_PER_SECOND = 1 / 300
_MOST_REMEMBERED = 4096

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """What is to be told about the object with `uid`."""

    uid: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """Send a new Event of this name."""

    name: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """Count the Event of this name up to `count`."""

    name: str
    message: str
    count: int


@dataclass(slots=True)
class _Alike:
    since: float
    count: int = 0


@dataclass(slots=True)
class _Sent:
    name: str
    count: int


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class _Memory(OrderedDict[KeyT, ValueT], Generic[KeyT, ValueT]):
    """Remembers so many, and forgets the oldest."""

    def __setitem__(self, key: KeyT, value: ValueT) -> None:
        super().__setitem__(key, value)
        if len(self) > _MOST_REMEMBERED:
            self.popitem(last=False)


@dataclass(slots=True)
class Correlator:
    """What was sent before, as far as it matters for what is sent next."""

    _alike: _Memory[tuple[str, str, str], _Alike] = field(default_factory=_Memory)
    _sent: _Memory[tuple[str, str, str, str], _Sent] = field(default_factory=_Memory)
    _buckets: _Memory[str, _Bucket] = field(default_factory=_Memory)

    def correlate(self, happening: Happening, *, now: float) -> Fresh | Repeated | None:
        """What to send for a happening; None for nothing."""
        if not self._has_token(happening.uid, now):
            return None
        combined = self._are_too_many_alike(happening, now)
        message = f"(combined from similar events): {happening.message}" if combined else happening.message
        key = (happening.uid, happening.type, happening.reason, "" if combined else happening.message)
        sent = self._sent.get(key)
        if sent is None:
            sent = self._sent[key] = _Sent(name=f"metaloop.{uuid4().hex}", count=1)
            return Fresh(name=sent.name, message=message)
        sent.count += 1
        return Repeated(name=sent.name, message=message, count=sent.count)

    def _has_token(self, uid: str, now: float) -> bool:
        bucket = self._buckets.get(uid)
        if bucket is None:
            bucket = self._buckets[uid] = _Bucket(tokens=_BUCKET_SIZE, at=now)
        bucket.tokens = min(_BUCKET_SIZE, bucket.tokens + (now - bucket.at) * _REFILL_PER_SECOND)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _are_too_many_alike(self, happening: Happening, now: float) -> bool:
        key = (happening.uid, happening.type, happening.reason)
        alike = self._alike.get(key)
        if alike is None or now - alike.since > _ALIKE_SECONDS:
            alike = self._alike[key] = _Alike(since=now)
        alike.count += 1
        return alike.count > _ALIKE_LIMIT
