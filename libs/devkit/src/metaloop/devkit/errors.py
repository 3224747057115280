"""What can go wrong while running Metaloop on a laptop.

DevkitError
├── AssetsMissing        no source had the control-plane programs
├── ClusterUnreachable   the API server of a kubeconfig does not answer, or refuses us
├── NothingToPlan        no controller serves the object to plan for, or several do
├── ControllerExists     the controller whose finalizers are to be removed still exists, and would add them again
├── StartFailed          a program ended before it was ready, or was not ready in time
└── CrashLoop            a program crashed again after each restart

Each of them ends the command. The user reads its text, so it names the failed part and shows the end of its log.
"""

import os
import textwrap
from pathlib import Path

_TAIL_BYTES = 64 * 1024
_TAIL_LINES = 12
_LINE_CHARACTERS = 400


class DevkitError(Exception):
    """The root: a failure that the person at the terminal has to know."""


class AssetsMissing(DevkitError):
    """No source had all control-plane programs."""


class ClusterUnreachable(DevkitError):
    """The API server that a kubeconfig names does not answer, or refuses us."""


class NothingToPlan(DevkitError):
    """The named object is a parent of no controller, or of more than one."""


class ControllerExists(DevkitError):
    """A controller whose finalizers are to be removed still exists, and would add them again."""


class StartFailed(DevkitError):
    """A program ended before it was ready, or was not ready in time; `tail` is the end of its log."""

    def __init__(self, name: str, reason: str, *, tail: str) -> None:
        """Name the program, the reason, and the last lines of its log."""
        super().__init__(f"{name} did not start: {reason}{quoted(tail)}")
        self.tail = tail


class CrashLoop(DevkitError):
    """A program crashed so often in so short a time that another start makes no sense."""

    def __init__(self, name: str, reason: str, *, tail: str) -> None:
        """Name the program, how it ended, and the last lines of its log."""
        super().__init__(f"{name} keeps crashing: {reason}{quoted(tail)}")


def quoted(tail: str) -> str:
    """The end of a log as indented lines below a message; empty for an empty log."""
    return "".join(f"\n    {textwrap.shorten(line, _LINE_CHARACTERS, placeholder=' ...')}" for line in tail.splitlines())


def tail_of(log: Path) -> str:
    """The last lines of a log file; empty if there is no such file."""
    try:
        with log.open("rb") as file:
            beginning = max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES)
            file.seek(beginning)
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    # Where the log is longer than what was read of it, the first line is only a part of one: better than nothing.
    complete = lines[1:] if beginning else lines
    return "\n".join((complete or lines)[-_TAIL_LINES:])
