"""Read-your-writes: which keys wait until the cache has seen what their last sync wrote.

Found from the object that an event concerns, so that the event of an object nobody waits for costs one look-up.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from metaloop.common.objects.resource import ResourceId
from metaloop.common.report import Write

Waiter = TypeVar("Waiter", bound=Hashable)
ObjectName: TypeAlias = tuple[ResourceId, str, str]
"""Resource, namespace, name."""
Seen: TypeAlias = Callable[[Write], bool]
"""Whether the cache is no older than a write."""


@dataclass(slots=True)
class Gate(Generic[Waiter]):
    """The writes that are awaited, by waiter and by object."""

    seen: Seen
    _awaited: dict[Waiter, dict[ObjectName, Write]] = field(default_factory=dict[Waiter, dict[ObjectName, Write]])
    """What each waiter still awaits, the last write to each object: never nothing."""
    _waiters: dict[ObjectName, set[Waiter]] = field(default_factory=dict[ObjectName, set[Waiter]])
    """The same by object: never an empty set."""

    def __len__(self) -> int:
        return len(self._awaited)

    def __contains__(self, waiter: Waiter) -> bool:
        return waiter in self._awaited

    def close(self, waiter: Waiter, writes: Iterable[Write]) -> bool:
        """Whether `waiter` has to wait now, until the cache has seen `writes`; replaces what it waited for before."""
        self.open(waiter)
        unseen = {(write.resource, write.namespace, write.name): write for write in writes if not self.seen(write)}
        if not unseen:
            return False
        self._awaited[waiter] = unseen
        for name in unseen:
            self._waiters.setdefault(name, set()).add(waiter)
        return True

    def awaited(self, waiter: Waiter) -> Iterable[Write]:
        """The writes that `waiter` still waits for."""
        return self._awaited.get(waiter, {}).values()

    def open(self, waiter: Waiter) -> None:
        """Let `waiter` wait no longer."""
        for name in self._awaited.pop(waiter, ()):
            self._strike(name, waiter)

    def progress(self, name: ObjectName) -> list[Waiter]:
        """The waiters that need wait no longer, now that the cache has news of an object."""
        return [waiter for waiter in tuple(self._waiters.get(name, ())) if self._is_last_awaited(name, waiter)]

    def _is_last_awaited(self, name: ObjectName, waiter: Waiter) -> bool:
        """Whether the news is the last that `waiter` awaited; struck off its list where it is what it awaited."""
        awaited = self._awaited[waiter]
        if not self.seen(awaited[name]):
            return False
        del awaited[name]
        self._strike(name, waiter)
        if awaited:
            return False
        del self._awaited[waiter]
        return True

    def _strike(self, name: ObjectName, waiter: Waiter) -> None:
        waiters = self._waiters[name]
        waiters.discard(waiter)
        if not waiters:
            del self._waiters[name]
