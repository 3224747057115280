"""Keeps the garbage collector from searching the whole cache over and over.

Nothing in the cache is part of a reference cycle, but the collector cannot know. With 100,000 objects, each full run
stops the process for more than 0.1 s, and in a burst it runs after every few thousand events. So full runs are made by
the clock.
"""

import asyncio
import gc

_YOUNG = 20_000
_MIDDLE = 50
_NEVER = 1_000_000
_FULL_RUN_SECONDS = 600.0


def spare_the_cache() -> None:
    """Have the collector run over young objects by itself, and over everything only when it is told to."""
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)


async def collect_now_and_then() -> None:
    """Run over everything every ten minutes, until cancelled: connections that ended, tasks that failed."""
    while True:
        await asyncio.sleep(_FULL_RUN_SECONDS)
        gc.collect()
