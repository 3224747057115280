"""The machines of simulated processes: their clocks follow virtual time, and somebody may set or suspend them."""

import asyncio
from random import Random
from typing import Final

EPOCH_SECONDS: Final = 1_767_225_600.0
"""The wall clock at virtual time 0: the beginning of 2026."""
_TICK_SECONDS: Final = 1e-6


class SimulatedMachine:
    """The clocks and the random numbers of one process."""

    def __init__(self, name: str, *, seed: str) -> None:
        self.random = Random(f"{seed}/{name}")  # noqa: S311 - a seed decides everything
        self._ahead_seconds = 0.0
        self._slept_seconds = 0.0
        self._wall_readings = 0

    def set_ahead(self, seconds: float) -> None:
        """Set the wall clock, ahead of all others or behind them."""
        self._ahead_seconds = seconds

    def slept(self, seconds: float) -> None:
        """Note that the machine was suspended for so long: only the monotonic clock did not count it."""
        self._slept_seconds += seconds

    def monotonic(self) -> float:
        """Virtual time without that of sleep."""
        return asyncio.get_running_loop().time() - self._slept_seconds

    def boot_time(self) -> float:
        """Virtual time."""
        return asyncio.get_running_loop().time()

    def wall_time(self) -> float:
        """Seconds since 1970, as far as this machine knows. No two readings are equal, as on a real machine."""
        self._wall_readings += 1
        return EPOCH_SECONDS + asyncio.get_running_loop().time() + self._ahead_seconds + self._wall_readings * _TICK_SECONDS
