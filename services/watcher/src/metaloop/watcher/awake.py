"""Notices that this process was asleep, stopped or starved: what it knows is then older than it seems, until it has read what waits for it."""

import asyncio
from collections.abc import Callable

from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.catchup import CatchUp

log = get_logger()

_BEAT_SECONDS = 0.1
_ASLEEP_SECONDS = 1.0
"""Who didn't come to beat for so long did nothing else either."""


class Awake:
    """The heartbeat of this process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._beat_at = clock()
        self._catch_up = CatchUp()

    async def run(self) -> None:
        """Beat for ever."""
        while True:
            self.look()
            await asyncio.sleep(_BEAT_SECONDS)

    def look(self) -> None:
        """Note that we are awake, and whether we weren't a moment ago."""
        now = self._clock()
        if now - self._beat_at > _ASLEEP_SECONDS:
            log.warning("watcher.slept", **{fields.SECONDS: round(now - self._beat_at, 3)})
            self._catch_up.broke()
            self._catch_up.flows(now)
        self._beat_at = now

    def distrust(self, *, before: float) -> None:
        """Others may have done something before that time, when we didn't listen: what we know gets its time, as if we had slept until then."""
        self._catch_up.broke()
        self._catch_up.flows(before)

    def is_behind(self) -> bool:
        """Whether we slept a moment ago; to be asked by whoever may come before the next beat."""
        self.look()
        return self._catch_up.is_behind(self._beat_at)
