"""Measures how long this process's event loop is held up: how late a timer fires."""

import asyncio
from collections.abc import Callable
from typing import Final

from metaloop.common.machine import monotonic
from metaloop.common.telemetry import metrics

BEAT_SECONDS: Final = 0.025
"""A turn of the loop that takes longer than this is always noticed. What is measured is at most so much too short."""

_lag_seconds = metrics.histogram(
    "metaloop_event_loop_lag_seconds",
    "How late a timer of the event loop fired, measured 40 times a second.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)


async def record_lag(*, clock: Callable[[], float] = monotonic) -> None:
    """Measure the lag until cancelled."""
    while True:
        due = clock() + BEAT_SECONDS
        await asyncio.sleep(BEAT_SECONDS)
        _lag_seconds.observe(max(0.0, clock() - due))
