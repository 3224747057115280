"""Whether what we know may be from before our own last writes: after a watch broke, or this process was asleep, until what was missed has come.

A write that was acknowledged is waited for by its version (see `gate.py`). But of a write whose answer was lost, and of a worker that died, nobody knows a
version; there only time helps, and it counts from when news flows again.
"""

from dataclasses import dataclass

CATCH_UP_SECONDS = 1.0
"""How long after news flows again all that was missed has come: a server sends it at once."""


@dataclass(slots=True)
class CatchUp:
    """One source of news."""

    _is_broken: bool = False
    _behind_until: float = float("-inf")

    def broke(self) -> None:
        """No news comes any more."""
        self._is_broken = True

    def flows(self, now: float) -> None:
        """News comes, perhaps again."""
        if self._is_broken:
            self._is_broken = False
            self._behind_until = now + CATCH_UP_SECONDS

    def give_up(self) -> None:
        """There will be no news, for a reason that somebody has to mend: then what was seen last has to do."""
        self._is_broken = False

    def is_behind(self, now: float) -> bool:
        """Whether something that happened may not have been seen."""
        return self._is_broken or now < self._behind_until
