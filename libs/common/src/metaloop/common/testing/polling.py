"""Waits for a condition that other tasks or processes bring about."""

import asyncio
from collections.abc import Callable

_POLL_SECONDS = 0.01


async def eventually(condition: Callable[[], bool], *, within_seconds: float = 30.0) -> None:
    """Return once `condition` holds; raises TimeoutError if it does not in time."""
    async with asyncio.timeout(within_seconds):
        while not condition():  # noqa: ASYNC110 - the condition has no event to wait for
            await asyncio.sleep(_POLL_SECONDS)
