"""Read-your-writes: which keys wait until the cache has seen what was written for them.

Waiters are found by the object of an event, so an event that nobody waits for costs one look-up.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

from metaloop.common.objects.resource import ResourceId
from metaloop.common.report import Write

Waiter = TypeVar("Waiter", bound=Hashable)
ObjectName: TypeAlias = tuple[ResourceId, str, str]
"""Resource, namespace, name."""


class CacheProgress(Protocol):
    """How far the cache has come."""

    def has_seen(self, write: Write) -> bool:
        """Whether the cache is no older than `write`."""
        ...

    def is_silent(self, resource: ResourceId, *, since: float) -> bool:
        """Whether nothing was heard of a watched resource since then. Then an event that is awaited may still come."""
        ...


@dataclass(slots=True)
class Gate(Generic[Waiter]):
    """The awaited writes, by waiter and by object."""

    cache: CacheProgress
    _awaited: dict[Waiter, dict[ObjectName, Write]] = field(default_factory=dict[Waiter, dict[ObjectName, Write]])
    """What each waiter still awaits: the last write to each object. Never empty."""
    _closed_at: dict[Waiter, float] = field(default_factory=dict[Waiter, float])
    """When each waiter was last told to wait."""
    _waiters: dict[ObjectName, set[Waiter]] = field(default_factory=dict[ObjectName, set[Waiter]])
    """The same by object. No set is empty."""

    def __len__(self) -> int:
        return len(self._awaited)

    def __contains__(self, waiter: Waiter) -> bool:
        return waiter in self._awaited

    def awaited(self) -> Iterator[tuple[Waiter, list[Write]]]:
        """Each waiter, and what it awaits."""
        return ((waiter, [*writes.values()]) for waiter, writes in self._awaited.items())

    def close(self, waiter: Waiter, writes: Iterable[Write], *, now: float) -> bool:
        """Whether `waiter` has to wait until the cache has seen `writes`, too.

        Of several writes to one object, the last one counts.
        """
        unseen = {(write.resource, write.namespace, write.name): write for write in writes if not self.cache.has_seen(write)}
        if not unseen:
            return False
        self._closed_at[waiter] = now
        self._awaited.setdefault(waiter, {}).update(unseen)
        for name in unseen:
            self._waiters.setdefault(name, set()).add(waiter)
        return True

    def is_closed_since(self, waiter: Waiter, moment: float) -> bool:
        """Whether `waiter` has waited since then, or for longer."""
        return self._closed_at.get(waiter, moment) <= moment

    def hears_nothing(self, waiter: Waiter, *, since: float) -> bool:
        """Whether an event that `waiter` awaits is certain, and is missing because nothing was heard of its resource.

        A write that may not have been executed promises no event: a resource that nobody changes is always silent.
        """
        awaited = self._awaited.get(waiter, {}).values()
        return any(self.cache.is_silent(write.resource, since=since) for write in awaited if not write.is_uncertain)

    def open(self, waiter: Waiter) -> None:
        """Let `waiter` wait no longer."""
        self._closed_at.pop(waiter, None)
        for name in self._awaited.pop(waiter, ()):
            self._strike(name, waiter)

    def progress(self, name: ObjectName) -> list[Waiter]:
        """The waiters that no longer have to wait, after an event of an object."""
        return [waiter for waiter in tuple(self._waiters.get(name, ())) if self._is_last_awaited(name, waiter)]

    def _is_last_awaited(self, name: ObjectName, waiter: Waiter) -> bool:
        """Whether `waiter` awaits nothing any more, after an event of this object."""
        awaited = self._awaited[waiter]
        if not self.cache.has_seen(awaited[name]):
            return False
        del awaited[name]
        self._strike(name, waiter)
        if awaited:
            return False
        self.open(waiter)
        return True

    def _strike(self, name: ObjectName, waiter: Waiter) -> None:
        waiters = self._waiters[name]
        waiters.discard(waiter)
        if not waiters:
            del self._waiters[name]
