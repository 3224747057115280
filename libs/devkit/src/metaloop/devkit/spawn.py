"""Starts child processes that the kernel kills when this process ends."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from metaloop.devkit.errors import DevkitError

_WRAPPER = Path(__file__).with_name("pdeathsig.py")


async def spawn(argv: Sequence[str], *, folder: Path, log: Path, env: Mapping[str, str] | None = None) -> asyncio.subprocess.Process:
    """A child process in our process group that does not outlive us.

    It works in `folder`, and appends its output to `log`.
    """
    # The kernel ties a child to the *thread* that forked it: one forked by another thread would die when that thread
    # ends.
    if threading.current_thread() is not threading.main_thread():
        raise DevkitError(f"{argv[0]} can only be started from the main thread")
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_WRAPPER), str(os.getpid())),
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            env=env,
            cwd=folder,
        )


async def kill_tree(process: asyncio.subprocess.Process) -> None:
    """Kill a child process with all its descendants, for tools that start others, as compilers do."""
    if process.returncode is not None:
        return
    for member in _tree_of(process.pid):
        with suppress(psutil.NoSuchProcess):
            member.kill()
    await process.wait()


def exit_text(code: int) -> str:
    """An exit code in words: `exit code 1`, `signal SIGKILL`."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _tree_of(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
