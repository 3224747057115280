"""What can go wrong while running Metaloop on a laptop, drawn as a tree.

DevkitError
├── AssetsMissing        no source could give the control-plane programs
├── ClusterUnreachable   the API server of a kubeconfig does not answer, or refuses us
├── NothingToPlan        a plan was asked for of something that no controller serves, or that several do
├── ControllerLives      finalizers were to be taken away that a live controller puts back
├── StartFailed          a program ended, or stayed silent, before it was ready
└── KeepsDying           a program was started again and again, and died each time

Every one of them ends the command: its text is what the user reads, so it names the part and what to look at.
"""

import os
import textwrap
from pathlib import Path

_TAIL_BYTES = 64 * 1024
_TAIL_LINES = 12
_LINE_CHARACTERS = 400


class DevkitError(Exception):
    """The root: something that the person at the terminal has to know."""


class AssetsMissing(DevkitError):
    """No source could give all control-plane programs."""


class ClusterUnreachable(DevkitError):
    """The API server that a kubeconfig names does not answer, or refuses us."""


class NothingToPlan(DevkitError):
    """What was named is no parent of any controller, or of more than one."""


class ControllerLives(DevkitError):
    """A controller whose finalizers were to be taken off its parents is there, and would put them back."""


class StartFailed(DevkitError):
    """A program ended, or stayed silent, before it was ready; `tail` is the end of its log."""

    def __init__(self, name: str, reason: str, *, tail: str) -> None:
        """Name the program, why we gave up, and what it said last."""
        super().__init__(f"{name} did not start: {reason}{quoted(tail)}")
        self.tail = tail


class KeepsDying(DevkitError):
    """A program died too often in too short a time for another try to make sense."""

    def __init__(self, name: str, reason: str, *, tail: str) -> None:
        """Name the program, how it died, and what it said last."""
        super().__init__(f"{name} keeps dying: {reason}{quoted(tail)}")


def quoted(tail: str) -> str:
    """The end of a log as indented lines below a message; nothing for an empty log."""
    return "".join(f"\n    {textwrap.shorten(line, _LINE_CHARACTERS, placeholder=' ...')}" for line in tail.splitlines())


def tail_of(log: Path) -> str:
    """The last lines of a log file, or nothing where there is no such file."""
    try:
        with log.open("rb") as file:
            beginning = max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES)
            file.seek(beginning)
            lines = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    # The first line is cut off where the log is longer than what we read of it.
    return "\n".join(lines[bool(beginning) :][-_TAIL_LINES:])
