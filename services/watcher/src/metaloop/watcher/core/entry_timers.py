"""The timers of the queue's entries, and the resync periods of controllers."""

from dataclasses import dataclass, field
from math import ceil
from typing import Final

from metaloop.common.job import ControllerId, JobKey
from metaloop.watcher.core.backoff import GRID, resync_due
from metaloop.watcher.core.entry import Entry, Purpose
from metaloop.watcher.core.fair_queue import MarkClass
from metaloop.watcher.core.timers import Timer, Timers

MARKS_OF_TIMERS: Final = {
    Purpose.RETRY: (MarkClass.RETRY, "retry"),
    Purpose.RESYNC_AFTER: (MarkClass.RESYNC, "resyncAfterSeconds"),
    Purpose.RESYNC: (MarkClass.RESYNC, "resync"),
    Purpose.LATER: (MarkClass.CHANGED, "its counts changed"),
    Purpose.AT_LATEST: (MarkClass.CHANGED, "its counts go on changing"),
}
"""The marks that timers make which fire: their classes and reasons."""


@dataclass(slots=True)
class EntryTimers:
    """All timers of entries.

    Timers refer to keys, and entries to timers: there is no reference cycle for the garbage collector to find.
    """

    _timers: Timers[JobKey] = field(default_factory=Timers[JobKey])
    _resync_periods: dict[ControllerId, float] = field(default_factory=dict[ControllerId, float])
    """In seconds, of the controllers that have one."""

    def set_resync_period(self, controller: ControllerId, seconds: float | None) -> bool:
        """Whether the resync period of a controller changed; None for none."""
        if self._resync_periods.get(controller) == seconds:
            return False
        self._resync_periods.pop(controller, None)
        if seconds is not None:
            self._resync_periods[controller] = seconds
        return True

    def expect(self, entry: Entry, *, by: float) -> None:
        """Fire the stage timer of `entry` unless something happens to it before. What that is depends on its stage."""
        # Most of these timers are stopped before they fire: one wake-up skips hundreds. Never earlier than asked.
        self._timers.set(entry.stage_timer, due=ceil(by * GRID) / GRID)

    def set(self, entry: Entry, purpose: Purpose, *, due: float) -> None:
        """Fire the timer of `entry` for `purpose` at `due`, and not when it would have."""
        timer = entry.timer_for(purpose)
        if timer is None:
            timer = Timer(entry.key, purpose)
            entry.timers = (*entry.timers, timer)
        self._timers.set(timer, due=due)

    def put_off(self, entry: Entry, *, due: float, at_latest: float) -> None:
        """Mark `entry` at `due`, and not when it would have been before, but at `at_latest` of the first such call."""
        self.set(entry, Purpose.LATER, due=due)
        if entry.due(Purpose.AT_LATEST) is None:
            self.set(entry, Purpose.AT_LATEST, due=at_latest)

    def set_if_earlier(self, entry: Entry, purpose: Purpose, *, due: float) -> None:
        """Fire the timer of `entry` for `purpose` at `due`, or when it would have if that is earlier."""
        pending = entry.due(purpose)
        self.set(entry, purpose, due=due if pending is None else min(pending, due))

    def arm_resync(self, entry: Entry, *, now: float) -> None:
        """Set the timer for the next resync unless one is due already."""
        period = self._resync_periods.get(entry.key.controller)
        if period is not None and entry.due(Purpose.RESYNC) is None:
            self.set(entry, Purpose.RESYNC, due=resync_due(entry.key, period_seconds=period, now=now))

    def pop_due(self, now: float) -> Timer[JobKey] | None:
        """The timer that is due first, stopped by this; None where none is due."""
        return self._timers.pop_due(now)

    def next_due(self) -> float | None:
        """When to ask for due timers next: never too late, at times too early. None where no timer is set."""
        return self._timers.next_due()
