"""Waiting for what must come true, and watching over what must stay true."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_POLL_SECONDS = 0.05


def expect(holds: object, message: str) -> None:
    """Raise AssertionError with a message unless something holds."""
    if not holds:
        raise AssertionError(message)


async def eventually(check: Callable[[], Awaitable[T]], *, within_seconds: float = 30.0) -> T:
    """What `check` returns the first time that it raises no AssertionError; its last AssertionError when time is over."""
    deadline = time.monotonic() + within_seconds
    while True:
        try:
            return await check()
        except AssertionError as error:
            if time.monotonic() > deadline:
                error.add_note(f"still so after {within_seconds:g} s")
                raise
        await asyncio.sleep(_POLL_SECONDS)


async def steadily(check: Callable[[], Awaitable[object]], *, for_seconds: float = 1.0) -> None:
    """Nothing, after `check` has held at every look for a while: for what must *not* happen, once it would have had its cause."""
    deadline = time.monotonic() + for_seconds
    while time.monotonic() < deadline:
        await check()
        await asyncio.sleep(_POLL_SECONDS)
