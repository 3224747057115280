"""The order of waiting keys: fair queueing among controllers, priority classes and aging within each.

- **Round robin among controllers.** Each controller is one flow. A flow with a thousand waiting keys gets no more turns
  than one with a single key; a flow at its concurrency limit is skipped until one of its keys is done.
- **Priority within a flow**: a *new* parent goes before a *changed* one, that before the *echo* of our own write to a
  parent (its hook has been called with the change already and rarely has anything to add), that before a *retry*, that
  before a *resync*.
- **Aging**: every fourth turn of a flow goes to a lower class in which a key has waited too long, so nothing starves.
- **Newest and oldest alternate** within a class: a fresh change overtakes a backlog after one turn, and the oldest key
  still advances with every second turn.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, TypeVar

from metaloop.watcher.core.queue_counts import ControllerQueueCounts

Item = TypeVar("Item", bound=Hashable)


class MarkClass(IntEnum):
    """Why a key waits, in order of priority."""

    NEW = 0
    CHANGED = 1
    ECHO = 2
    RETRY = 3
    RESYNC = 4


_AGED_AFTER_SECONDS = {MarkClass.CHANGED: 1.0, MarkClass.ECHO: 2.0, MarkClass.RETRY: 2.0, MarkClass.RESYNC: 10.0}
"""How long a key of a lower class waits before it may take the turn that is reserved for aged keys."""
_TURNS_PER_AGED = 4


@dataclass(slots=True, eq=False)
class ClassQueue(Generic[Item]):
    """The waiting keys of one flow and class, each once, in the order in which they came."""

    items: OrderedDict[Item, float] = field(default_factory=OrderedDict[Item, float])
    """Each with the time since when it waits."""
    oldest_is_next: bool = False

    def pop_alternating(self) -> Item:
        """The newest and the oldest in turn."""
        item, _ = self.items.popitem(last=not self.oldest_is_next)
        self.oldest_is_next = not self.oldest_is_next
        return item

    def longest_wait(self, now: float) -> float:
        """How long the oldest has waited; 0 where none waits."""
        return now - next(iter(self.items.values())) if self.items else 0.0


@dataclass(slots=True, eq=False)
class Flow(Generic[Item]):
    """One controller's waiting keys, and how many of its keys are in flight."""

    classes: tuple[ClassQueue[Item], ...] = field(default_factory=lambda: tuple(ClassQueue[Item]() for _ in MarkClass))
    """One queue per `MarkClass`, in its order."""
    max_concurrent: int | None = None
    """The controller's own limit of keys in flight; None for no limit."""
    share: int | None = None
    """The limit that applies to every flow, so that the workers always have room for another one; None for no limit."""
    is_blocked: bool = False
    """Whether none of its keys may go for now."""
    in_flight: int = 0
    """Keys that `pop` returned or `enter` counted, and that are not yet released."""
    is_active: bool = False
    """Whether it is in the round robin: always, where it has a key that may go."""
    turns: int = 0
    waiting: int = 0
    """How many keys wait in its class queues."""
    numbers: ControllerQueueCounts = field(default_factory=ControllerQueueCounts)

    @property
    def has_room(self) -> bool:
        """Whether another key may be in flight."""
        return not self.is_blocked and all(limit is None or self.in_flight < limit for limit in (self.max_concurrent, self.share))

    @property
    def is_ready(self) -> bool:
        """Whether it has a key that may go now."""
        return self.waiting > 0 and self.has_room

    def longest_wait(self, now: float) -> float:
        """How long the oldest of its waiting keys has waited; 0 where none waits."""
        return max(queue.longest_wait(now) for queue in self.classes)

    def pop(self, now: float) -> Item:
        """The key that goes next; one must wait."""
        self.turns += 1
        self.waiting -= 1
        aged = self._aged_class(now) if self.turns % _TURNS_PER_AGED == 0 else None
        if aged is not None:
            return aged.items.popitem(last=False)[0]
        return next(queue for queue in self.classes if queue.items).pop_alternating()

    def _aged_class(self, now: float) -> ClassQueue[Item] | None:
        """The lower class whose oldest key has exceeded its waiting time by most; None where none has."""
        overdue = {klass: self.classes[klass].longest_wait(now) - limit for klass, limit in _AGED_AFTER_SECONDS.items()}
        worst = max(overdue, key=lambda klass: overdue[klass])
        return self.classes[worst] if overdue[worst] >= 0 else None


class FairQueue(Generic[Item]):
    """All flows, served in turn."""

    def __init__(self) -> None:
        self._active: deque[Flow[Item]] = deque()
        """Each flow that is ready, once. A flow that is no longer ready stays until its turn comes."""
        self._waiting = 0
        self.share: int | None = None
        """The limit of each flow, as `set_share` set it last."""

    def __len__(self) -> int:
        return self._waiting

    def push(self, item: Item, flow: Flow[Item], klass: MarkClass, *, now: float) -> None:
        """Have `item`, which must not wait yet, wait in `flow`."""
        flow.classes[klass].items[item] = now
        flow.waiting += 1
        self._waiting += 1
        self._activate(flow)

    def discard(self, item: Item, flow: Flow[Item]) -> None:
        """Have `item` no longer wait."""
        for queue in flow.classes:
            if queue.items.pop(item, None) is not None:
                flow.waiting -= 1
                self._waiting -= 1

    def pop(self, now: float) -> Item | None:
        """The item that goes next, which counts as in flight from now on; None where none may go."""
        while self._active:
            flow = self._active.popleft()
            flow.is_active = False
            if flow.is_ready:
                item = flow.pop(now)
                self._waiting -= 1
                flow.in_flight += 1
                self._activate(flow)
                return item
        return None

    def enter(self, flow: Flow[Item]) -> None:
        """Count an item of `flow` as in flight that `pop` did not return."""
        flow.in_flight += 1

    def release(self, flow: Flow[Item]) -> None:
        """Count one item of `flow` fewer as in flight."""
        flow.in_flight -= 1
        self._activate(flow)

    def limit(self, flow: Flow[Item], max_concurrent: int | None) -> None:
        """Allow so many items of `flow` in flight at once; None for no limit."""
        flow.max_concurrent = max_concurrent
        self._activate(flow)

    def unblock(self, flow: Flow[Item]) -> None:
        """Let the keys of a blocked flow go."""
        flow.is_blocked = False
        self._activate(flow)

    def set_share(self, share: int, flows: Iterable[Flow[Item]]) -> None:
        """Allow each of all `flows` so many items in flight at once, beside its own limit."""
        self.share = share
        for flow in flows:
            flow.share = share
            self._activate(flow)

    def _activate(self, flow: Flow[Item]) -> None:
        if not flow.is_active and flow.is_ready:
            flow.is_active = True
            self._active.append(flow)
