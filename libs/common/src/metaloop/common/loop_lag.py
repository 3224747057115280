"""Measures how long this process's event loop is held up: how late a timer fires."""

import asyncio
from collections.abc import Callable

from metaloop.common.machine import monotonic
from metaloop.common.telemetry import metrics

_lag_seconds = metrics.histogram(
    "metaloop_event_loop_lag_seconds",
    "How late a timer of the event loop fired, which fires every METALOOP_LOOP_BEAT_SECONDS.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)


async def record_lag(*, beat_seconds: float, clock: Callable[[], float] = monotonic) -> None:
    """Measure the lag until cancelled.

    A turn of the loop that takes longer than a beat is always noticed. What is measured is at most a beat too short.
    """
    loop = asyncio.get_running_loop()

    def beat(due: float) -> None:
        nonlocal timer
        now = clock()
        _lag_seconds.observe(max(0.0, now - due))
        timer = loop.call_later(beat_seconds, beat, now + beat_seconds)

    # A task that sleeps costs several times as much, which an idle service would spend all day.
    timer = loop.call_later(beat_seconds, beat, clock() + beat_seconds)
    try:
        await loop.create_future()
    finally:
        timer.cancel()
