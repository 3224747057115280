"""Broker connectivity: how long ago the message broker answered.

A leader that can't reach it can't lead the workers behind it.
"""

import asyncio
from typing import Protocol

from metaloop.common.errors import Unavailable

_INTERVAL_SECONDS = 1.0


class Broker(Protocol):
    """What is asked."""

    async def check(self) -> None:
        """Return where the broker answers. Raises Unavailable where it doesn't."""
        ...


class BrokerConnectivity:
    """Asks the broker once a second."""

    def __init__(self, broker: Broker, *, patience_seconds: float) -> None:
        self._broker = broker
        self._patience_seconds = patience_seconds
        self._answered_at = asyncio.get_running_loop().time()

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            try:
                await self._broker.check()
            except Unavailable:
                pass
            else:
                self._answered_at = asyncio.get_running_loop().time()
            await asyncio.sleep(_INTERVAL_SECONDS)

    def is_cut_off(self) -> bool:
        """Whether the broker hasn't answered for longer than `patience_seconds`."""
        return asyncio.get_running_loop().time() - self._answered_at > self._patience_seconds
