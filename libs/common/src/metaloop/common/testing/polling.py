"""Waits for what real parts do in their own time."""

import asyncio
from collections.abc import Callable

_POLL_SECONDS = 0.01


async def eventually(condition: Callable[[], bool], *, within_seconds: float = 30.0) -> None:
    """Return once `condition` holds; `TimeoutError` where it doesn't in time."""
    async with asyncio.timeout(within_seconds):
        while not condition():  # noqa: ASYNC110 - real parts set no event of ours
            await asyncio.sleep(_POLL_SECONDS)
