"""Starts child processes that the kernel ends with us, and ends them together with what they started."""

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

_TETHER = Path(__file__).with_name("tether.py")


async def spawn(argv: Sequence[str], *, folder: Path, log: Path, env: Mapping[str, str] | None = None) -> asyncio.subprocess.Process:
    """A running child in our process group, working in `folder`, its output added to `log`; it does not outlive us."""
    # The kernel ties a child to the *thread* that forked it: from any other than the main thread it would die too early.
    if threading.current_thread() is not threading.main_thread():
        raise DevkitError(f"{argv[0]} can only be started from the main thread")
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_TETHER), str(os.getpid())),
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            env=env,
            cwd=folder,
        )


async def kill_tree(process: asyncio.subprocess.Process) -> None:
    """End a child and every process below it with SIGKILL: for tools that start others, as compilers do."""
    if process.returncode is not None:
        return
    for member in _tree_of(process.pid):
        with suppress(psutil.NoSuchProcess):
            member.kill()
    await process.wait()


def _tree_of(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def exit_text(code: int) -> str:
    """How a process ended, in words."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
