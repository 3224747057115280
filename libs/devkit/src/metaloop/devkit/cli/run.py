"""Runs the work of a command until it ends or a signal stops it."""

import asyncio
import signal
import sys
from collections.abc import Coroutine

from metaloop.common.errors import MetaloopError
from metaloop.devkit import console
from metaloop.devkit.errors import DevkitError

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(work: Coroutine[None, None, None]) -> None:
    """Do the work.

    A signal to stop ends it with exit code 0 after the cleanup; a failure prints one message and ends with exit code 1.
    """
    try:
        asyncio.run(_until_signalled(work))
    except (DevkitError, MetaloopError) as failure:
        console.error(str(failure))
        sys.exit(1)


async def forever() -> None:
    """Never return: for work that goes on until a signal stops it."""
    await asyncio.Event().wait()


async def _until_signalled(work: Coroutine[None, None, None]) -> None:
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    signalled = asyncio.Event()

    def stop(number: int, _: object) -> None:
        # From now on signals are ignored, so that a second Ctrl-C does not interrupt the cleanup. These are no handlers
        # of the event loop, since those would end with the loop, a moment before the process does.
        for each in _STOP_SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        console.message(f"{signal.Signals(number).name}: stopping")
        console.mute()
        signalled.set()
        loop.call_soon_threadsafe(task.cancel)

    for each in _STOP_SIGNALS:
        signal.signal(each, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not signalled.is_set():
            raise
