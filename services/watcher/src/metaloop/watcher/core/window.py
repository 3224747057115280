"""How many jobs may lie in the stream unclaimed: a little over what the workers could take now.

What lies in the stream has left our order, and a fresh change can't overtake it. Too few, and a worker waits for us; but a job is claimed
within a millisecond where a slot is free, and its place is filled at once, so few are enough.
"""

from dataclasses import dataclass, field

_ALWAYS = 8
_MOST_FOR_SLOTS = 24


@dataclass(slots=True)
class Window:
    """The workers' free slots, as they last told us."""

    _slots: dict[str, int] = field(default_factory=dict[str, int])
    _told_at: dict[str, float] = field(default_factory=dict[str, float])
    _free: int = 0
    """The sum of `_slots`."""

    @property
    def size(self) -> int:
        """How many jobs may be unclaimed."""
        return _ALWAYS + min(self._free, _MOST_FOR_SLOTS)

    @property
    def workers(self) -> int:
        """How many workers we know of."""
        return len(self._slots)

    def tell(self, worker: str, slots: int, *, now: float) -> None:
        """A worker says how many more jobs it could take."""
        self._free += slots - self._slots.get(worker, 0)
        self._slots[worker] = slots
        self._told_at[worker] = now

    def forget_silent(self, *, since: float) -> None:
        """Count no more on workers that said nothing since then."""
        for worker in [worker for worker, told_at in self._told_at.items() if told_at < since]:
            del self._told_at[worker]
            self._free -= self._slots.pop(worker)
