"""Whether a cached answer may stand in, and what to remember from a new one."""

from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Final, NamedTuple

OVERHEAD_BYTES: Final = 512
"""What an entry weighs beside its body and its texts: so that very many tiny answers are bounded too."""

MAX_TAG_LENGTH: Final = 1024


class Question(NamedTuple):
    """What an answer is remembered for: one parent revision, asked at one hook of one controller, at one URL."""

    controller: str
    hook: str
    url: str
    parent_uid: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EtagPolicy:
    """Whether the spec wants answers to be remembered, and for how long; without a timeout, for as long as there is room."""

    enabled: bool = False
    timeout_seconds: float | None = None
    cleanup_seconds: float | None = None
    """How often forgotten answers are collected. It may be absent: an answer past its timeout never stands in, collected or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """An answer and the tag that its webhook gave it."""

    etag: str
    body: bytes
    expires_at: float = inf


@dataclass(slots=True)
class EtagCache:
    """The last answer to each question, as many as fit into the bound; the least recently used go first."""

    capacity_bytes: int
    size_bytes: int = 0
    """Always the sum of the entries' weights, and never above the capacity."""

    _entries: OrderedDict[Question, Remembered] = field(default_factory=OrderedDict)
    _collections: list[tuple[float, int, Question, Remembered]] = field(default_factory=list)
    """When to collect which entry, soonest first. An entry may have been replaced since: then its turn is void."""

    _order: "count[int]" = field(default_factory=count)

    def answer_to(self, question: Question, *, now: float) -> Remembered | None:
        """The remembered answer whose tag may be sent, if there is one and its time is not over."""
        entry = self._entries.get(question)
        if entry is None or entry.expires_at <= now:
            return None
        self._entries.move_to_end(question)
        return entry

    def remember(self, question: Question, *, etag: str, body: bytes, policy: EtagPolicy, now: float) -> None:
        """Put the newest answer in the place of the last one. An answer without a tag leaves nothing that may stand in for it."""
        self.forget(question)
        if not etag or len(etag) > MAX_TAG_LENGTH:
            return
        expires_at = inf if policy.timeout_seconds is None else now + policy.timeout_seconds
        entry = Remembered(etag=etag, body=body, expires_at=expires_at)
        weight = _weight(question, entry)
        if weight > self.capacity_bytes:
            return
        self._make_room(weight)
        self._entries[question] = entry
        self.size_bytes += weight
        if expires_at != inf:
            heappush(self._collections, (expires_at + (policy.cleanup_seconds or 0), next(self._order), question, entry))

    def forget(self, question: Question) -> None:
        """Remember no answer to this question."""
        if (entry := self._entries.pop(question, None)) is not None:
            self.size_bytes -= _weight(question, entry)

    def collect(self, *, now: float) -> None:
        """Free what has been past its timeout for one cleanup interval."""
        while self._collections and self._collections[0][0] <= now:
            _, _, question, entry = heappop(self._collections)
            if self._entries.get(question) is entry:
                self.forget(question)

    def __len__(self) -> int:
        return len(self._entries)

    def _make_room(self, weight: int) -> None:
        while self.size_bytes + weight > self.capacity_bytes:
            question, entry = self._entries.popitem(last=False)
            self.size_bytes -= _weight(question, entry)


def _weight(question: Question, entry: Remembered) -> int:
    return OVERHEAD_BYTES + len(entry.body) + len(entry.etag) + sum(map(len, question))
