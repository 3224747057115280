"""Keeps an unforeseen exception to the object or the task that caused it, like client-go's `HandleCrash`."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Never, Self

from metaloop.common.telemetry import fields, get_logger

log = get_logger()

_RESTART_SECONDS = 1.0


class CrashBlock:
    """The block of `crash_logged`. Each sync enters one, and a generator would cost several times as much."""

    __slots__ = ("_event", "_keys", "_passing", "problem")

    def __init__(self, event: str, passing: tuple[type[Exception], ...], keys: dict[str, object]) -> None:
        self.problem = ""
        """After the block: the exception, as a report says it; empty if the block did not crash."""
        self._event = event
        self._passing = passing
        self._keys = keys

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> bool:
        if not isinstance(error, Exception) or isinstance(error, self._passing):
            return False
        self.problem = f"unforeseen: {error!r}"
        log.error(self._event, exc_info=error, **{**self._keys, fields.ERROR: repr(error)})
        return True


def crash_logged(event: str, *, passing: tuple[type[Exception], ...] = (), **keys: object) -> CrashBlock:
    """Log what the block raises, with its traceback, as `event` with these keys. The caller goes on after the block.

    For tasks that serve many objects: what one of them causes must not end the service of all others, again after each
    restart. Also an exception group is logged. Cancellation and the exceptions of `passing` pass.
    """
    return CrashBlock(event, passing, keys)


async def restarting(name: str, main: Callable[[], Awaitable[object]]) -> Never:
    """Run `main` until cancelled: a second after it crashed or returned, once more.

    For tasks that keep nothing that a crash could leave in doubt. Any other task ends the process with its crash.
    """
    while True:
        with crash_logged("task.crashed", task=name):
            await main()
        await asyncio.sleep(_RESTART_SECONDS)
