"""Starts tasks a few per iteration of the event loop, so that other work runs in between."""

import asyncio
from collections import deque


class Pacer:
    """Lets so many callers go on in each iteration of the event loop; the others wait, first come, first served.

    Hundreds of calls that begin at once, as when a hook hangs and its controller's parents pile up, would otherwise run
    as one long piece of work, and each of their steps as another. A single short call of another controller would wait
    for all of them.
    """

    def __init__(self, per_iteration: int) -> None:
        self._per_iteration = per_iteration
        self._left = per_iteration
        """How many more may go on in this iteration."""

        self._waiting: deque[asyncio.Future[None]] = deque()
        """Empty unless none are left."""

    async def wait(self) -> None:
        """Return at once, or in a later iteration if too many callers came before in this one."""
        loop = asyncio.get_running_loop()
        if self._left == self._per_iteration:
            loop.call_soon(self._next_iteration, loop)
        if self._left:
            self._left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next_iteration(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left = self._per_iteration
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():  # its task may have been cancelled
                turn.set_result(None)
                self._left -= 1
        if self._left < self._per_iteration:
            loop.call_soon(self._next_iteration, loop)
