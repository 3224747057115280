"""How many requests are out at once: fewer when the API server turns some away, more again while it takes them all.

Requests per second are nobody's to fix: what a server can take depends on what it is, and on who else asks. A server that has too much to do says so with 429.
Each request that it turns away was one too many, so the bound falls by one for each; while all are taken it rises slowly, by one in a few rounds of requests. So it
settles just below what the server takes.

A request that was turned away keeps its place while it waits before it is sent again: others would be turned away too.
"""

from typing import Final

from metaloop.common.waiting import WaiterQueue

LEAST: Final = 2.0
_ROUNDS: Final = 4.0
"""How many times as many requests as the bound allows have to be taken, before it allows one more."""


class Pace:
    """The bound, and who waits for a place below it."""

    def __init__(self, *, most: int) -> None:
        self._most = float(most)
        self._bound = float(most)
        self._out = 0
        self._waiters = WaiterQueue()

    @property
    def bound(self) -> int:
        """How many may be out at once now."""
        return int(self._bound)

    async def enter(self, *, again: bool = False) -> None:
        """Return when there is a place, which is left by `leave`; who was turned away comes first."""
        if self._out < self.bound and not self._waiters:
            self._out += 1
            return
        await self._waiters.wait(on_unused=self.leave, at_front=again)

    def taken(self) -> None:
        """The server did what was asked."""
        if self._bound < self._most:
            self._bound = min(self._most, self._bound + 1 / (_ROUNDS * self._bound))

    def turned_away(self) -> None:
        """The server had too much to do for a request."""
        self._bound = max(LEAST, min(self._bound, self._out) - 1)

    def leave(self) -> None:
        """A place is free."""
        self._out -= 1
        while self._out < self.bound and self._waiters.wake_next():
            self._out += 1
