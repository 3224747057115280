"""Keeps an unforeseen exception to the object or the task that caused it, like client-go's `HandleCrash`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Never

from metaloop.common.telemetry import fields, get_logger

log = get_logger()

_RESTART_SECONDS = 1.0


@dataclass(slots=True)
class Crash:
    """What a block of `crash_logged` gives: after the block, whether it crashed."""

    problem: str = ""
    """The exception, as a report says it; empty if the block did not crash."""


@contextmanager
def crash_logged(event: str, *, passing: tuple[type[Exception], ...] = (), **keys: object) -> Iterator[Crash]:
    """Log what the block raises, with its traceback, as `event` with these keys. The caller goes on after the block.

    For tasks that serve many objects: what one of them causes must not end the service of all others, again after each
    restart. Also an exception group is logged. Cancellation and the exceptions of `passing` pass.
    """
    crash = Crash()
    try:
        yield crash
    except passing:
        raise
    except Exception as error:  # whoever opens the block serves other objects, too
        crash.problem = f"unforeseen: {error!r}"
        log.exception(event, **{**keys, fields.ERROR: repr(error)})


async def restarting(name: str, main: Callable[[], Awaitable[object]]) -> Never:
    """Run `main` until cancelled: a second after it crashed or returned, once more.

    For tasks that keep nothing that a crash could leave in doubt. Any other task ends the process with its crash.
    """
    while True:
        with crash_logged("task.crashed", task=name):
            await main()
        await asyncio.sleep(_RESTART_SECONDS)
