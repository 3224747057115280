"""Tells the person at the terminal what is going on, on stderr: stdout is for results alone."""

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_REWRITE_SECONDS = 0.5
_REPEAT_SECONDS = 15.0
_CLEAR_LINE = "\r\x1b[K"

_hushed = False


def line(text: str) -> None:
    """Print one line of ours, unless we were hushed."""
    if not _hushed:
        _write(f"metaloop: {text}\n")


def error(text: str) -> None:
    """Print what went wrong, hushed or not."""
    _write(f"metaloop: error: {text}\n")


def hush() -> None:
    """Say nothing but errors from now on: whoever stops us is not interested in what ends, and what had to be started again for it."""
    global _hushed  # noqa: PLW0603 - there is one terminal, and it is told to the end of the process
    _hushed = True


def duration(seconds: float) -> str:
    """A time span as a person says it: `4.2 s`, `37 s`, `3 min 05 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


class Progress:
    """Something that takes its time: one living line on a terminal, a line now and then elsewhere."""

    def __init__(self, what: str) -> None:
        """Tell what begins."""
        self._what = what
        self._started = time.monotonic()
        self._told = self._started
        self._on_terminal = sys.stderr.isatty()
        line(f"{what} ...")

    def update(self, detail: str = "") -> None:
        """Tell how far it is and how long it has taken so far, unless that was told a moment ago."""
        now = time.monotonic()
        if _hushed or now - self._told < (_REWRITE_SECONDS if self._on_terminal else _REPEAT_SECONDS):
            return
        self._told = now
        text = f"metaloop: {self._what}: {detail and detail + ', '}{duration(now - self._started)} so far"
        _write(f"{_CLEAR_LINE}{text}" if self._on_terminal else f"{text}\n")

    @contextmanager
    def ticking(self) -> Iterator[None]:
        """Tell how long it has taken, again and again, for as long as the block lasts."""
        loop = asyncio.get_running_loop()

        def tick() -> None:
            nonlocal timer
            self.update()
            timer = loop.call_later(_REWRITE_SECONDS, tick)

        timer = loop.call_later(_REWRITE_SECONDS, tick)
        try:
            yield
        finally:
            timer.cancel()
            self.clear()

    def done(self, result: str) -> None:
        """Tell how it ended, and after how long."""
        self.clear()
        line(f"{result} ({duration(time.monotonic() - self._started)})")

    def clear(self) -> None:
        """Remove the living line, so that the next line begins on an empty one."""
        if self._on_terminal:
            _write(_CLEAR_LINE)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
