"""Keeps the garbage collector from searching the whole cache over and over.

Nothing in the cache is part of a cycle, but the collector can't know: with 100,000 objects, each of its full runs stops us for more than
0.1 s, and in a burst it runs after every few thousand events. So full runs are made now and then, by the clock.
"""

import asyncio
import gc

_YOUNG = 20_000
_MIDDLE = 50
_NEVER = 1_000_000
_FULL_RUN_SECONDS = 600.0


def spare_the_cache() -> None:
    """From here on the collector looks at what is young by itself, and at everything only when it is told to."""
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)


async def collect_now_and_then() -> None:
    """Look through everything now and then, for ever: connections that ended, tasks that failed."""
    while True:
        await asyncio.sleep(_FULL_RUN_SECONDS)
        gc.collect()
