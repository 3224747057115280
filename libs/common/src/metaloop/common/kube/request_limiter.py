"""Limits the requests in flight: fewer when the API server rejects some, more while it accepts them all (AIMD).

A fixed rate would be wrong: what a server can take depends on the server, and on its other clients. An overloaded
server answers 429. Each rejected request was one too many, so it lowers the limit by one; while all requests are
accepted, the limit grows by one in four rounds. So it settles just below what the server accepts.

A rejected request keeps its slot until it is sent again, and then goes before those that wait: they would be rejected,
too.
"""

from typing import Final

from metaloop.common.waiting import WaiterQueue

MIN_LIMIT: Final = 2.0
_ROUNDS_PER_INCREASE: Final = 4.0
"""How many times as many requests as the limit must be accepted before it grows by one."""


class RequestLimiter:
    """A semaphore whose size follows the API server's answers."""

    def __init__(self, *, maximum: int) -> None:
        self._maximum = float(maximum)
        self._limit = float(maximum)
        self._in_flight = 0
        self._waiters = WaiterQueue()

    @property
    def limit(self) -> int:
        """How many requests may be in flight now."""
        return int(self._limit)

    async def acquire(self, *, is_retry: bool = False) -> None:
        """Wait until another request may be sent; `release` must follow.

        A retry goes before requests that were not sent yet.
        """
        if self._in_flight < self.limit and not self._waiters:
            self._in_flight += 1
            return
        await self._waiters.wait(on_unused=self.release, at_front=is_retry)

    def release(self) -> None:
        """End a request, and let those that wait follow up to the limit."""
        self._in_flight -= 1
        while self._in_flight < self.limit and self._waiters.wake_next():
            self._in_flight += 1

    def accepted(self) -> None:
        """Note that the server executed a request: the limit grows by a fraction, up to the maximum."""
        if self._limit < self._maximum:
            self._limit = min(self._maximum, self._limit + 1 / (_ROUNDS_PER_INCREASE * self._limit))

    def rejected(self) -> None:
        """Note that the server rejected a request as too many: the limit falls by one."""
        self._limit = max(MIN_LIMIT, min(self._limit, self._in_flight) - 1)
