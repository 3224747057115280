"""Whether the caches may be older than our own last writes, after a watch broke or this process stalled.

An acknowledged write is awaited by its version (see `gate.py`). Where the answer to a write was lost, or a worker died,
the version is unknown. Then only time helps, counted from when events flow again.

Nobody waits without end for a source that does not come back: after `LONGEST_FREEZE_SECONDS`, what was seen last has to
do, for at least as long again.
"""

from dataclasses import dataclass

CATCH_UP_SECONDS = 1.0
"""How long after events flow again everything that was missed has arrived: a server sends it at once."""
LONGEST_FREEZE_SECONDS = 30.0
"""How long a source may keep back those who depend on it: an API server is restarted within this time."""


@dataclass(slots=True)
class CatchUp:
    """One source of events."""

    _is_broken: bool = False
    _behind_until: float = float("-inf")
    _behind_since: float = float("-inf")
    """Since when it has been behind without a break, or was last."""

    def broke(self, now: float) -> None:
        """No events arrive any more."""
        if not self._is_catching_up(now):
            self._behind_since = now
        self._is_broken = True

    def flows(self, now: float) -> None:
        """Events arrive, perhaps again."""
        if self._is_broken:
            self._is_broken = False
            self._behind_until = now + CATCH_UP_SECONDS
            if now - self._behind_since > 2 * LONGEST_FREEZE_SECONDS:
                self._behind_since = now

    def give_up(self) -> None:
        """No events will arrive until somebody repairs it. What was seen last has to do."""
        self._behind_since = float("-inf")

    def is_behind(self, now: float) -> bool:
        """Whether those who depend on it have to wait, as something that happened may not have been seen."""
        return self._is_catching_up(now) and not self.is_given_up(now)

    def is_given_up(self, now: float) -> bool:
        """Whether something may have been missed, and nobody waits for it any more."""
        return self._is_catching_up(now) and now - self._behind_since >= LONGEST_FREEZE_SECONDS

    def _is_catching_up(self, now: float) -> bool:
        return self._is_broken or now < self._behind_until
