"""Runs a command's work until it ends or somebody tells us to stop."""

import asyncio
import signal
from collections.abc import Coroutine

import typer

from metaloop.common.errors import MetaloopError
from metaloop.devkit import tell
from metaloop.devkit.errors import DevkitError

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(work: Coroutine[None, None, None]) -> None:
    """Do the work. A signal to stop is a good end, once everything is cleaned up; a failure is one message and exit code 1."""
    try:
        asyncio.run(_until_signalled(work))
    except (DevkitError, MetaloopError) as failure:
        tell.line(f"error: {failure}")
        raise typer.Exit(1) from None


async def forever() -> None:
    """Never return: for work that goes on until somebody stops it."""
    await asyncio.Event().wait()


async def _until_signalled(work: Coroutine[None, None, None]) -> None:
    task = asyncio.ensure_future(work)
    signalled = asyncio.Event()

    def stop(name: str) -> None:
        # Once only: a second Ctrl-C must not cut the cleaning up short.
        if not signalled.is_set():
            signalled.set()
            tell.line(f"{name}: stopping")
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop, number.name)
    try:
        await task
    except asyncio.CancelledError:
        if not signalled.is_set():
            raise
