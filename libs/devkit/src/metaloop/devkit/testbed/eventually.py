"""Waits until a condition holds, or checks that a condition keeps holding."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

_POLL_SECONDS = 0.05


def expect(holds: object, message: str) -> None:
    """Raise AssertionError with a message unless a condition holds."""
    if not holds:
        raise AssertionError(message)


async def eventually(check: Callable[[], Awaitable[T]], *, within_seconds: float = 30.0) -> T:
    """The result of the first `check` that raises no AssertionError.

    Raises the last AssertionError when the time is over.
    """
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        with suppress(AssertionError):
            return await check()
        await asyncio.sleep(_POLL_SECONDS)
    try:
        return await check()
    except AssertionError as error:
        error.add_note(f"after {within_seconds:g} s")
        raise


async def steadily(check: Callable[[], Awaitable[object]], *, for_seconds: float = 1.0) -> None:
    """Repeat `check` for a while: for what must *not* happen after its cause."""
    deadline = time.monotonic() + for_seconds
    while time.monotonic() < deadline:
        await check()
        await asyncio.sleep(_POLL_SECONDS)
