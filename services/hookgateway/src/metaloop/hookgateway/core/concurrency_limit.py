"""Limits how many calls wait for an endpoint to accept them, by AIMD, once it accepts some calls and not others.

A server that handles one connection at a time has a short listen backlog (Python's `HTTPServer`: five connections).
Connections beyond the backlog are not refused: the kernel drops them silently, and the client's kernel retries after
one second, two, four. So the limit follows TCP's congestion control, with connections in the place of packets:

    a call was not accepted, others were    the limit drops to `MIN_LIMIT`; half of what was pending becomes the
                                            threshold of slow start
    a call was accepted or answered         it is no longer pending. While calls wait for the limit, it grows: by one up
                                            to the threshold, which doubles it in each round of calls; above the
                                            threshold by one in four rounds

Accepted calls no longer count, however long their answers take: a server whose backlog was full for a moment
soon gets the whole burst. When no call is accepted, the endpoint is down. That is the circuit breaker's subject and
sets no limit here.
"""

from dataclasses import dataclass
from math import inf
from typing import Final

MIN_LIMIT: Final = 5.0
"""The lowest limit: as many calls as Metacontroller sends at once."""

_MAX_LIMIT: Final = 1000.0
"""A limit that grows to this is lifted."""

_ROUNDS_PER_INCREASE: Final = 4.0
"""Above the slow-start threshold."""


@dataclass(slots=True)
class ConcurrencyLimit:
    """The limit of one endpoint, and how many calls to it are pending: sent, and not known to be accepted."""

    pending: int = 0
    maximum: float = inf
    """How many calls may be pending at once."""

    _slow_start_threshold: float = inf
    _accepted_at: float = -inf
    _lowered_at: float = -inf

    @property
    def has_room(self) -> bool:
        """Whether another call may be sent."""
        return self.pending + 1 <= self.maximum

    def accepted(self, *, now: float) -> None:
        """Note that the endpoint accepted a call that is still counted as pending."""
        self._accepted_at = now
        if self.has_room:
            return  # no call waits for a higher limit
        self.maximum += 1.0 if self.maximum < self._slow_start_threshold else 1.0 / (_ROUNDS_PER_INCREASE * self.maximum)
        if self.maximum >= _MAX_LIMIT:
            self.maximum = self._slow_start_threshold = inf

    def not_accepted(self, *, since: float, now: float) -> bool:
        """Note that a call is pending since then. Returns whether others are the cause, so that it should back off.

        The calls of one burst lower the limit once.
        """
        if self._accepted_at < since:
            return False
        if self._lowered_at < since:
            self._slow_start_threshold = max(MIN_LIMIT, min(self.pending, self.maximum) / 2)
            self.maximum, self._lowered_at = MIN_LIMIT, now
        return True
