"""Runs a command's work until it ends or somebody tells us to stop."""

import asyncio
import signal
import sys
from collections.abc import Coroutine

from metaloop.common.errors import MetaloopError
from metaloop.devkit import console
from metaloop.devkit.errors import DevkitError

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(work: Coroutine[None, None, None]) -> None:
    """Do the work. A signal to stop is a good end, once everything is cleaned up; a failure is one message and exit code 1."""
    try:
        asyncio.run(_until_signalled(work))
    except (DevkitError, MetaloopError) as failure:
        console.error(str(failure))
        sys.exit(1)


async def forever() -> None:
    """Never return: for work that goes on until somebody stops it."""
    await asyncio.Event().wait()


async def _until_signalled(work: Coroutine[None, None, None]) -> None:
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    signalled = asyncio.Event()

    def stop(number: int, _: object) -> None:
        # Once only, and for good: a second Ctrl-C must not cut the cleaning up short. Hence no handlers of the loop: they
        # would be gone with it, a moment before we are.
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
