"""Whether NATS can be reached from here: a leader that can't reach it leads nobody."""

import asyncio
from typing import Protocol

from metaloop.common.errors import Unavailable

_INTERVAL_SECONDS = 1.0


class Reachable(Protocol):
    """What is asked."""

    async def check(self) -> None:
        """Return where it answers; Unavailable where it doesn't."""


class Reach:
    """Asks NATS now and then."""

    def __init__(self, bus: Reachable, *, patience_seconds: float) -> None:
        self._bus = bus
        self._patience_seconds = patience_seconds
        self._reached_at = asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Ask for ever."""
        while True:
            try:
                await self._bus.check()
            except Unavailable:
                pass
            else:
                self._reached_at = asyncio.get_running_loop().time()
            await asyncio.sleep(_INTERVAL_SECONDS)

    def is_cut_off(self) -> bool:
        """Whether it hasn't answered for longer than our patience."""
        return asyncio.get_running_loop().time() - self._reached_at > self._patience_seconds
