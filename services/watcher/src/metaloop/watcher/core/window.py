"""How many jobs may lie in the stream unclaimed: slightly more than the workers could take now.

A job in the stream has left the fair order, and a fresh change cannot overtake it. With too few, workers would wait for
the watcher; but a job is claimed within a millisecond where a slot is free, and the next one follows at once, so few
are enough.
"""

from dataclasses import dataclass, field

_ALWAYS = 8
_MAX_FOR_SLOTS = 24


@dataclass(slots=True)
class Window:
    """The workers' free slots, as they last said."""

    _slots: dict[str, int] = field(default_factory=dict[str, int])
    _said_at: dict[str, float] = field(default_factory=dict[str, float])
    _free: int = 0
    """The sum of `_slots`."""

    @property
    def size(self) -> int:
        """How many jobs may be unclaimed."""
        return _ALWAYS + min(self._free, _MAX_FOR_SLOTS)

    @property
    def workers(self) -> int:
        """How many workers are known."""
        return len(self._slots)

    def set_slots(self, worker: str, slots: int, *, now: float) -> None:
        """A worker says how many more jobs it can take."""
        self._free += slots - self._slots.get(worker, 0)
        self._slots[worker] = slots
        self._said_at[worker] = now

    def forget_silent(self, *, since: float) -> None:
        """Forget the workers that have said nothing since then."""
        for worker in [worker for worker, said_at in self._said_at.items() if said_at < since]:
            del self._said_at[worker]
            self._free -= self._slots.pop(worker)
