"""How many calls may knock at one endpoint at once: as many as there are, until it turns out that it doesn't take them all.

A server that serves one call after the other has a short backlog (Python's `HTTPServer`: five connections). What comes beyond is not refused: the
kernel says nothing, and both sides try again after one second, two, four. So the bound is that of TCP, for connections in the place of packets:

    a call was not taken, and others were   the bound is what every server takes, and half of what it was before is noted
    a call was taken, or answered           it knocks no more; the bound rises by one, up to what was noted: it doubles in each round of calls;
                                            above that by one in four rounds, to see whether more are taken by now

What was taken counts no more, however long its answer takes: so a server that was only surprised by a burst soon has all of it.
Where nobody's call is taken, the endpoint is down: that is the circuit breaker's to know, and bounds nothing here.
"""

from dataclasses import dataclass
from math import inf
from typing import Final

FEW: Final = 5.0
"""So many may knock at every webhook: what Metacontroller sends at once."""
_MANY: Final = 1000.0
"""Beyond, there is no bound."""
_ROUNDS: Final = 4.0


@dataclass(slots=True)
class Crowd:
    """The calls that are out to one endpoint, and of which nobody knows yet whether they were taken."""

    knocking: int = 0
    bound: float = inf
    """How many may knock at once."""

    _noted: float = inf
    _taken_at: float = -inf
    _bounded_at: float = -inf

    @property
    def has_room(self) -> bool:
        """Whether another call may go out."""
        return self.knocking + 1 <= self.bound

    def taken(self, *, now: float) -> None:
        """The endpoint took what one of those sent; it is not counted any more after this."""
        self._taken_at = now
        if self.has_room:
            return  # nobody waits for a higher bound
        self.bound += 1.0 if self.bound < self._noted else 1.0 / (_ROUNDS * self.bound)
        if self.bound >= _MANY:
            self.bound = self._noted = inf

    def untaken(self, *, since: float, now: float) -> bool:
        """A call knocks in vain `since` then: whether that is for the others that are out, so that it should come back later."""
        if self._taken_at < since:
            return False
        if self._bounded_at < since:
            self._noted = max(FEW, min(self.knocking, self.bound) / 2)
            self.bound, self._bounded_at = FEW, now
        return True
