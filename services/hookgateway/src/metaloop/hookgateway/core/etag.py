"""The cache of answers with ETags: which one may be revalidated, and which ones are dropped when."""

from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Final, NamedTuple

OVERHEAD_BYTES: Final = 512
"""The weight of an entry beside its body and its texts, so that a great many tiny answers are bounded too."""

MAX_TAG_LENGTH: Final = 1024


class CacheKey(NamedTuple):
    """What an answer is cached for: one revision of one parent, at one hook of one controller, at one URL."""

    controller: str
    hook: str
    url: str
    parent_uid: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EtagPolicy:
    """Whether the spec wants answers to be cached, and for how long.

    Without a timeout, for as long as there is room.
    """

    enabled: bool = False
    timeout_seconds: float | None = None
    cleanup_seconds: float | None = None
    """How long after its timeout an answer is freed at the latest.

    An answer past its timeout is never used, freed or not.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedAnswer:
    """An answer and the tag that its webhook gave it."""

    etag: str
    body: bytes
    expires_at: float = inf


@dataclass(slots=True)
class EtagCache:
    """The last answer for each key, as many as fit into the capacity. The least recently used are evicted first."""

    capacity_bytes: int
    size_bytes: int = 0
    """Always the sum of the entries' weights, and never above the capacity."""

    _entries: OrderedDict[CacheKey, CachedAnswer] = field(default_factory=OrderedDict)
    _evictions: list[tuple[float, int, CacheKey, CachedAnswer]] = field(default_factory=list)
    """A heap: when to evict which entry. An entry that has been replaced since is left alone."""

    _order: "count[int]" = field(default_factory=count)

    def get(self, key: CacheKey, *, now: float) -> CachedAnswer | None:
        """The cached answer whose tag may be sent, if there is one that has not expired."""
        entry = self._entries.get(key)
        if entry is None or entry.expires_at <= now:
            return None
        self._entries.move_to_end(key)
        return entry

    def put(self, key: CacheKey, *, etag: str, body: bytes, policy: EtagPolicy, now: float) -> None:
        """Replace the answer for a key. An answer without a usable tag is not cached, and the former one is dropped."""
        self.evict(key)
        if not etag or len(etag) > MAX_TAG_LENGTH:
            return
        expires_at = inf if policy.timeout_seconds is None else now + policy.timeout_seconds
        entry = CachedAnswer(etag=etag, body=body, expires_at=expires_at)
        weight = _weight(key, entry)
        if weight > self.capacity_bytes:
            return
        self._make_room(weight)
        self._entries[key] = entry
        self.size_bytes += weight
        if expires_at != inf:
            heappush(self._evictions, (expires_at + (policy.cleanup_seconds or 0), next(self._order), key, entry))

    def evict(self, key: CacheKey) -> None:
        """Drop the answer for this key."""
        if (entry := self._entries.pop(key, None)) is not None:
            self.size_bytes -= _weight(key, entry)

    def evict_expired(self, *, now: float) -> None:
        """Drop the answers that expired at least one cleanup interval ago."""
        while self._evictions and self._evictions[0][0] <= now:
            _, _, key, entry = heappop(self._evictions)
            if self._entries.get(key) is entry:
                self.evict(key)

    def __len__(self) -> int:
        return len(self._entries)

    def _make_room(self, weight: int) -> None:
        while self.size_bytes + weight > self.capacity_bytes:
            key, entry = self._entries.popitem(last=False)
            self.size_bytes -= _weight(key, entry)


def _weight(key: CacheKey, entry: CachedAnswer) -> int:
    return OVERHEAD_BYTES + len(entry.body) + len(entry.etag) + sum(map(len, key))
