"""How many requests are out at once: fewer when the API server turns some away, more again while it takes them all.

Requests per second are nobody's to fix: what a server can take depends on what it is, and on who else asks. A server that has too much to do says so with 429;
then the bound falls by a third, and it rises by one for each round of requests that were all taken. So it settles just below what the server takes.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Final

LEAST: Final = 2.0
_FALL: Final = 2 / 3
_ONE_FALL_SECONDS: Final = 0.2
"""A server that is at its end turns many away at once: they tell the same, once."""


class Pace:
    """The bound, and who waits for a place below it."""

    def __init__(self, *, most: int, clock: Callable[[], float] = monotonic) -> None:
        self._most = float(most)
        self._clock = clock
        self._bound = float(most)
        self._out = 0
        self._fell_at = float("-inf")
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def bound(self) -> int:
        """How many may be out at once now."""
        return int(self._bound)

    async def enter(self) -> None:
        """Return when there is a place; it is left by `leave`."""
        if self._out < self.bound and not self._waiting:
            self._out += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._give_back()
            raise

    def leave(self, *, was_taken: bool) -> None:
        """A request is answered; `was_taken` unless the server had too much to do for it."""
        if was_taken:
            self._bound = min(self._most, self._bound + 1 / self._bound)
        elif self._clock() - self._fell_at >= _ONE_FALL_SECONDS:
            self._fell_at = self._clock()
            self._bound = max(LEAST, min(self._bound, self._out) * _FALL)
        self._give_back()

    def _give_back(self) -> None:
        self._out -= 1
        while self._waiting and self._out < self.bound:
            place = self._waiting.popleft()
            if not place.done():
                self._out += 1
                place.set_result(None)
