"""Shows a scenario: as a live table on a terminal, as plain lines elsewhere."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from metaloop.devkit.console import duration
from metaloop.devkit.demo.snapshot import Row, Snapshot

_REDRAWS_PER_SECOND = 10
_PLAIN_SECONDS = 1.0
_ROWS = 10


class Output(Protocol):
    """Where a scenario shows its progress."""

    def begin(self, title: str) -> None:
        """A step begins."""
        ...

    def show(self, snapshot: Snapshot) -> None:
        """This is what the cluster holds now."""
        ...

    def end(self, result: str) -> None:
        """The step has ended."""
        ...


@contextmanager
def open_output() -> Iterator[Output]:
    """The output that suits stdout, open for as long as the block lasts."""
    console = Console()
    if not console.is_terminal:
        yield PlainOutput(console)
        return
    with Live(console=console, refresh_per_second=_REDRAWS_PER_SECOND, transient=True) as live:
        yield LiveOutput(live)


class PlainOutput:
    """A line when a step begins and when it ends, and at most one a second while something changes."""

    def __init__(self, console: Console) -> None:
        """Write to a console that is not a terminal."""
        self._console = console
        self._began = self._shown = time.monotonic()
        self._last = ""

    def begin(self, title: str) -> None:
        """Write the title."""
        self._began = self._shown = time.monotonic()
        self._last = ""
        self._write(f"{title} ...")

    def show(self, snapshot: Snapshot) -> None:
        """Write the counts, unless they are unchanged or the last line is less than a second old."""
        now, text = time.monotonic(), snapshot.counts
        if text != self._last and now - self._shown >= _PLAIN_SECONDS:
            self._shown, self._last = now, text
            self._write(f"   {text} ({duration(now - self._began)})")

    def end(self, result: str) -> None:
        """Write the result, and how long the step took."""
        self._write(f"   {result} ({duration(time.monotonic() - self._began)})")

    def _write(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)


class LiveOutput:
    """The finished steps, and below them the current one with a table of the snapshot."""

    def __init__(self, live: Live) -> None:
        """Draw into a live display."""
        self._live = live
        self._title = ""
        self._began = time.monotonic()

    def begin(self, title: str) -> None:
        """Show the title above the table until the step ends."""
        self._title, self._began = title, time.monotonic()

    def show(self, snapshot: Snapshot) -> None:
        """Show the snapshot as a table."""
        heading = Text(f"{self._title} ({duration(time.monotonic() - self._began)})", style="bold")
        self._live.update(Group(heading, Text(snapshot.counts, style="dim"), Columns(_tables(snapshot))))

    def end(self, result: str) -> None:
        """Replace the table by two lines that stay."""
        took = duration(time.monotonic() - self._began)
        self._live.console.print(Text.assemble(("✓ ", "green"), self._title), Text(f"  {result} ({took})", style="dim"), sep="\n")


class NoOutput:
    """Shows nothing."""

    def begin(self, title: str) -> None:
        """Do nothing."""

    def show(self, snapshot: Snapshot) -> None:
        """Do nothing."""

    def end(self, result: str) -> None:
        """Do nothing."""


def _tables(snapshot: Snapshot) -> list[RenderableType]:
    """The rows, as tables side by side that fit into most terminals."""
    return [_table(snapshot.columns, snapshot.rows[start : start + _ROWS]) for start in range(0, len(snapshot.rows), _ROWS)]


def _table(columns: Sequence[str], rows: Sequence[Row]) -> Table:
    table = Table(*columns)
    for row in rows:
        table.add_row(*row.cells, style="green" if row.is_right else "yellow")
    return table
