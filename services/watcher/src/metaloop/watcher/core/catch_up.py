"""Whether the caches may be older than our own last writes, after a watch broke or this process stalled.

An acknowledged write is awaited by its version (see `gate.py`). Where the answer to a write was lost, or a worker died,
the version is unknown. Then only time helps, counted from when events flow again.
"""

from dataclasses import dataclass

CATCH_UP_SECONDS = 1.0
"""How long after events flow again everything that was missed has arrived: a server sends it at once."""


@dataclass(slots=True)
class CatchUp:
    """One source of events."""

    _is_broken: bool = False
    _behind_until: float = float("-inf")

    def broke(self) -> None:
        """No events arrive any more."""
        self._is_broken = True

    def flows(self, now: float) -> None:
        """Events arrive, perhaps again."""
        if self._is_broken:
            self._is_broken = False
            self._behind_until = now + CATCH_UP_SECONDS

    def give_up(self) -> None:
        """No events will arrive until somebody repairs it. What was seen last has to do."""
        self._is_broken = False

    def is_behind(self, now: float) -> bool:
        """Whether something that happened may not have been seen."""
        return self._is_broken or now < self._behind_until
