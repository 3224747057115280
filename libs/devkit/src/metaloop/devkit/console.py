"""Messages to the person at the terminal, on stderr; stdout is for results alone."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import rich.progress
from rich.console import Console

_REPEAT_SECONDS = 15.0


@dataclass(slots=True)
class _Terminal:
    """The one terminal of this process."""

    console: Console = field(default_factory=lambda: Console(stderr=True))
    is_muted: bool = False


_terminal = _Terminal()


def message(text: str) -> None:
    """Print one line, unless messages are muted."""
    if not _terminal.is_muted:
        _print(text)


def error(text: str) -> None:
    """Print what went wrong, even when messages are muted."""
    _print(f"error: {text}")


def mute() -> None:
    """Print nothing but errors from now on.

    Whoever stops a command does not need to know which parts ended or were restarted.
    """
    _terminal.is_muted = True


def duration(seconds: float) -> str:
    """A time span as people write it: `4.2 s`, `37 s`, `3 min 05 s`."""
    if round(seconds, 1) < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"


class Progress:
    """Work that takes a while; made by `progress`."""

    def __init__(self, what: str) -> None:
        """Start the clock."""
        self.text = what
        self._what = what
        self._started = time.monotonic()

    @property
    def took(self) -> str:
        """How long the work has taken so far."""
        return duration(time.monotonic() - self._started)

    def update(self, detail: str) -> None:
        """Show this detail beside the name of the work."""
        self.text = f"{self._what}: {detail}"

    def done(self, result: str) -> None:
        """Print the result, and how long the work took."""
        message(f"{result} ({self.took})")


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """Show that some work is under way for as long as the block lasts.

    On a terminal it is a live line, elsewhere a line now and then, which the running event loop repeats.
    """
    work = Progress(what)
    with _live_line(work) if _terminal.console.is_interactive else _repeated_lines(work):
        yield work


def _live_line(work: Progress) -> AbstractContextManager[object]:
    columns = (rich.progress.SpinnerColumn(), _Text(work), rich.progress.TimeElapsedColumn())
    display = rich.progress.Progress(*columns, console=_terminal.console, transient=True)
    display.add_task("")
    return display


class _Text(rich.progress.ProgressColumn):
    """The present text of the work."""

    def __init__(self, work: Progress) -> None:
        super().__init__()
        self._work = work

    def render(self, task: rich.progress.Task) -> str:  # noqa: ARG002 - the base class passes it
        return f"metaloop: {self._work.text}"


@contextmanager
def _repeated_lines(work: Progress) -> Iterator[None]:
    """A line now and then: without a terminal rich shows nothing, but a log should show that work goes on."""
    loop = asyncio.get_running_loop()

    def repeat() -> None:
        nonlocal timer
        message(f"{work.text}, {work.took} so far")
        timer = loop.call_later(_REPEAT_SECONDS, repeat)

    message(f"{work.text} ...")
    timer = loop.call_later(_REPEAT_SECONDS, repeat)
    try:
        yield
    finally:
        timer.cancel()


def _print(text: str) -> None:
    _terminal.console.out(f"metaloop: {text}", highlight=False)
