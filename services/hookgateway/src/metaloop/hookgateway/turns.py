"""Lets many tasks go on a few at a time: between them the event loop looks after everybody else."""

import asyncio
from collections import deque


class Turns:
    """So many in each round of the event loop; who comes when these are taken goes on in a later round, first come, first served.

    Hundreds of calls that begin at once, as when a hook hangs and its controller's parents pile up, would otherwise be one long piece of
    work, and each of its steps another: whoever has one short call to make meanwhile would wait for all of them.
    """

    def __init__(self, in_a_round: int) -> None:
        self._in_a_round = in_a_round
        self._left = in_a_round
        """Of this round."""

        self._waiting: deque[asyncio.Future[None]] = deque()
        """Nobody, unless none are left."""

    async def mine(self) -> None:
        """Return when it is the caller's turn: at once, unless many came before in this round."""
        loop = asyncio.get_running_loop()
        if self._left == self._in_a_round:
            loop.call_soon(self._next_round, loop)
        if self._left:
            self._left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left = self._in_a_round
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():  # its task may have been cancelled
                turn.set_result(None)
                self._left -= 1
        if self._left < self._in_a_round:
            loop.call_soon(self._next_round, loop)
