"""Timers on one heap of due times. Moving or stopping a timer costs nothing."""

import heapq
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Owner = TypeVar("Owner")


@dataclass(slots=True, eq=False)
class Timer(Generic[Owner]):
    """One reason to look at its owner at a given time."""

    owner: Owner
    purpose: int
    due: float | None = None
    """When it fires; None while it is stopped."""
    queued: float | None = None
    """The time of its entry in the heap, never later than `due`. Entries with another time are stale and skipped."""


@dataclass(slots=True)
class Timers(Generic[Owner]):
    """All timers. One that moves to later keeps its entry, so a lease that is renewed a thousand times costs one."""

    _heap: list[tuple[float, int, Timer[Owner]]] = field(default_factory=list[tuple[float, int, Timer[Owner]]])
    _entries: int = 0
    """How many entries were made: the tie-breaker between equal times."""

    def set(self, timer: Timer[Owner], *, due: float) -> None:
        """Fire `timer` at `due`, and not when it would have fired."""
        timer.due = due
        if timer.queued is None or due < timer.queued:
            self._push(timer, due)

    def next_due(self) -> float | None:
        """When to ask for due timers next: never too late, at times too early. None where no timer is set."""
        self._skip_stale()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float) -> Timer[Owner] | None:
        """The timer that is due first, stopped by this; None where none is due."""
        while True:
            self._skip_stale()
            if not self._heap or self._heap[0][0] > now:
                return None
            timer = heapq.heappop(self._heap)[2]
            timer.queued = None
            if timer.due is None:
                continue
            if timer.due > now:
                self._push(timer, timer.due)
                continue
            timer.due = None
            return timer

    def _push(self, timer: Timer[Owner], due: float) -> None:
        self._entries += 1
        timer.queued = due
        heapq.heappush(self._heap, (due, self._entries, timer))

    def _skip_stale(self) -> None:
        while self._heap and self._heap[0][2].queued != self._heap[0][0]:
            heapq.heappop(self._heap)
