"""Detects that this process was suspended or starved. Its caches may be outdated until it has read what waits."""

import asyncio
from collections.abc import Callable

from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.catch_up import CatchUp

log = get_logger()

_BEAT_SECONDS = 0.1
_STALL_SECONDS = 1.0
"""A process that misses its beat for so long did nothing else either."""


class StallDetector:
    """The heartbeat of this process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._beat_at = clock()
        self._catch_up = CatchUp()

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            self.beat()
            await asyncio.sleep(_BEAT_SECONDS)

    def beat(self) -> None:
        """Record that the process runs, and detect whether it did not until a moment ago."""
        now = self._clock()
        if now - self._beat_at > _STALL_SECONDS:
            log.warning("watcher.stalled", **{fields.SECONDS: round(now - self._beat_at, 3)})
            self._catch_up.broke(now)
            self._catch_up.flows(now)
        self._beat_at = now

    def assume_stalled(self, *, until: float) -> None:
        """Count everything that was cached before `until` as possibly outdated, as after a stall that ended then."""
        self._catch_up.broke(until)
        self._catch_up.flows(until)

    def is_behind(self) -> bool:
        """Whether the process stalled until a moment ago. Notices a stall even before the next beat."""
        self.beat()
        return self._catch_up.is_behind(self._beat_at)
