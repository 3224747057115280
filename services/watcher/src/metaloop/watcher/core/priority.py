"""Which waiting key goes next: class, age, and a fair turn for each controller.

- **Controllers take turns.** One with a thousand waiting keys gets no more turns than one with a single key; one that is at its
  `max_concurrent` is passed over until a job of its own ends.
- **Classes**: within a controller, a parent that is *new* goes before what *changed*, that before the mere *echo* of what we wrote to a parent
  ourselves (its hook has said that already, and nearly always has nothing to add), that before what is tried again, and that before what is merely
  resynced.
- **Nothing starves**: each fourth turn of a controller goes to a lower class, where a key of it has waited too long.
- **New and old alternate** within a class: a fresh change overtakes a backlog after one turn, and the oldest still advances with
  every second turn.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


class MarkClass(IntEnum):
    """Why a key waits, in the order of precedence."""

    NEW = 0
    CHANGED = 1
    ECHO = 2
    RETRY = 3
    RESYNC = 4


_PATIENCE_SECONDS = {MarkClass.CHANGED: 1.0, MarkClass.ECHO: 2.0, MarkClass.RETRY: 2.0, MarkClass.RESYNC: 10.0}
"""How long a key of a lower class waits before it may have the turn that is kept for such."""
_TURNS_PER_AGED = 4


@dataclass(slots=True, eq=False)
class Line(Generic[Item]):
    """The keys of one class that wait, in the order in which they came; each once."""

    items: OrderedDict[Item, float] = field(default_factory=OrderedDict[Item, float])
    """Each with the time since when it waits."""
    oldest_is_next: bool = False

    def pop_alternating(self) -> Item:
        """The newest and the oldest in turns."""
        item, _ = self.items.popitem(last=not self.oldest_is_next)
        self.oldest_is_next = not self.oldest_is_next
        return item

    def longest_wait(self, now: float) -> float:
        """How long the oldest has waited; 0 where none waits."""
        return now - next(iter(self.items.values())) if self.items else 0.0


@dataclass(slots=True, eq=False)
class Lane(Generic[Item]):
    """One controller's waiting keys, and how many of its keys are on their way."""

    lines: tuple[Line[Item], ...] = field(default_factory=lambda: tuple(Line[Item]() for _ in MarkClass))
    max_concurrent: int | None = None
    share: int | None = None
    """What each lane may have on its way, so that the workers always have places for another."""
    is_shut: bool = False
    """Whether none of its keys may go, for now."""
    in_flight: int = 0
    """Keys handed out by `pop` (or entered by `enter`) and not yet `release`d."""
    is_in_ring: bool = False
    """Whether it is in the ring of `FairOrder`: always, where it has a key that may go."""
    turns: int = 0
    waiting: int = 0
    """How many keys wait in its lines."""

    @property
    def has_room(self) -> bool:
        """Whether another key may be on its way."""
        return not self.is_shut and all(most is None or self.in_flight < most for most in (self.max_concurrent, self.share))

    @property
    def is_ready(self) -> bool:
        """Whether it has a key that may go now."""
        return self.waiting > 0 and self.has_room

    def pop(self, now: float) -> Item:
        """The key that goes next; one must wait."""
        self.turns += 1
        self.waiting -= 1
        aged = self._aged_line(now) if self.turns % _TURNS_PER_AGED == 0 else None
        if aged is not None:
            return aged.items.popitem(last=False)[0]
        return next(line for line in self.lines if line.items).pop_alternating()

    def _aged_line(self, now: float) -> Line[Item] | None:
        """The lower line whose oldest key has been patient for longest beyond what is asked of it."""
        overdue = {klass: self.lines[klass].longest_wait(now) - patience for klass, patience in _PATIENCE_SECONDS.items()}
        worst = max(overdue, key=lambda klass: overdue[klass])
        return self.lines[worst] if overdue[worst] >= 0 else None


class FairOrder(Generic[Item]):
    """All lanes, and whose turn it is."""

    def __init__(self) -> None:
        self._ring: deque[Lane[Item]] = deque()
        """Each lane that is ready, once; the others may linger in it until their turn comes."""
        self._waiting = 0
        self.share: int | None = None
        """Of each lane, as it was dealt last."""

    def __len__(self) -> int:
        return self._waiting

    def push(self, item: Item, lane: Lane[Item], klass: MarkClass, *, now: float) -> None:
        """Have `item`, which doesn't wait yet, wait in `lane`."""
        lane.lines[klass].items[item] = now
        lane.waiting += 1
        self._waiting += 1
        self._enrol(lane)

    def discard(self, item: Item, lane: Lane[Item]) -> None:
        """Have `item` wait no more."""
        for line in lane.lines:
            if line.items.pop(item, None) is not None:
                lane.waiting -= 1
                self._waiting -= 1

    def pop(self, now: float) -> Item | None:
        """The item that goes next, now on its way for its lane; None where none may go."""
        while self._ring:
            lane = self._ring.popleft()
            lane.is_in_ring = False
            if lane.is_ready:
                item = lane.pop(now)
                self._waiting -= 1
                lane.in_flight += 1
                self._enrol(lane)
                return item
        return None

    def enter(self, lane: Lane[Item]) -> None:
        """Count an item of `lane` as on its way that wasn't handed out by `pop`."""
        lane.in_flight += 1

    def release(self, lane: Lane[Item]) -> None:
        """Count one item of `lane` less as on its way."""
        lane.in_flight -= 1
        self._enrol(lane)

    def limit(self, lane: Lane[Item], max_concurrent: int | None) -> None:
        """Let so many items of `lane` be on their way at once; None for any number."""
        lane.max_concurrent = max_concurrent
        self._enrol(lane)

    def admit(self, lane: Lane[Item]) -> None:
        """Let the keys of `lane` go that was shut."""
        lane.is_shut = False
        self._enrol(lane)

    def deal(self, share: int, lanes: Iterable[Lane[Item]]) -> None:
        """Let each of all `lanes` have so many items on their way at once, beside its own limit."""
        self.share = share
        for lane in lanes:
            lane.share = share
            self._enrol(lane)

    def _enrol(self, lane: Lane[Item]) -> None:
        if not lane.is_in_ring and lane.is_ready:
            lane.is_in_ring = True
            self._ring.append(lane)
