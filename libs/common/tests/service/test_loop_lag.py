"""How long the event loop is held up is recorded."""

import asyncio
import time
from itertools import count

import pytest

from metaloop.common.loop_lag import record_lag
from metaloop.common.telemetry import metrics

BEAT_SECONDS = 0.025


def turns(*, up_to: str) -> float:
    """How many beats came no later than this, so far."""
    return metrics.registry.get_sample_value("metaloop_event_loop_lag_seconds_bucket", {"le": up_to}) or 0.0


def longer_turns(than: str) -> float:
    return turns(up_to="+Inf") - turns(up_to=than)


async def test_blocked_loop_is_noticed():
    before = longer_turns("0.1")

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        recording = tasks.create_task(record_lag(beat_seconds=BEAT_SECONDS))
        await asyncio.sleep(0)
        time.sleep(0.1 + 2 * BEAT_SECONDS)  # noqa: ASYNC251 - that is what it is here for
        while longer_turns("0.1") == before:  # noqa: ASYNC110 - a metric can only be polled
            await asyncio.sleep(0)
        recording.cancel()

    assert longer_turns("0.1") == before + 1


@pytest.mark.parametrize(("step", "is_late"), [(BEAT_SECONDS, False), (BEAT_SECONDS + 0.3, True)])
async def test_lag_is_what_a_beat_took_beyond_its_interval(*, step: float, is_late: bool):
    """The clock moves by `step` whenever it is read: from the beginning of a beat to its end."""
    before, late_before, ticks = turns(up_to="+Inf"), longer_turns("0.25"), count()

    async with asyncio.TaskGroup() as tasks:
        recording = tasks.create_task(record_lag(beat_seconds=BEAT_SECONDS, clock=lambda: next(ticks) * step))
        while turns(up_to="+Inf") == before:  # noqa: ASYNC110 - a metric can only be polled
            await asyncio.sleep(0)
        recording.cancel()

    assert (longer_turns("0.25") > late_before) is is_late
