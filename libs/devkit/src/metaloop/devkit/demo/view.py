"""Shows the story: as a living table on a terminal, as plain lines elsewhere."""

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
from metaloop.devkit.demo.sight import Row, Sight

_REDRAWS_PER_SECOND = 10
_PLAIN_SECONDS = 1.0
_ROWS = 10


class View(Protocol):
    """What the story needs of whoever shows it."""

    def begin(self, title: str) -> None:
        """A scene begins."""
        ...

    def show(self, sight: Sight) -> None:
        """This is what there is now."""
        ...

    def end(self, result: str) -> None:
        """The scene has come to its end."""
        ...


@contextmanager
def opened_view() -> Iterator[View]:
    """The view that fits our standard output, for as long as the block lasts."""
    console = Console()
    if not console.is_terminal:
        yield PlainView(console)
        return
    with Live(console=console, refresh_per_second=_REDRAWS_PER_SECOND, transient=True) as live:
        yield LivingView(live)


class PlainView:
    """A line when a scene begins and ends, and one a second while something changes."""

    def __init__(self, console: Console) -> None:
        """Write to a console that is no terminal."""
        self._console = console
        self._began = self._told = time.monotonic()
        self._last = ""

    def begin(self, title: str) -> None:
        """The title, on a line of its own."""
        self._began = self._told = time.monotonic()
        self._last = ""
        self._write(f"{title} ...")

    def show(self, sight: Sight) -> None:
        """The counts, unless they are the same or were told a moment ago."""
        now, text = time.monotonic(), sight.counts
        if text != self._last and now - self._told >= _PLAIN_SECONDS:
            self._told, self._last = now, text
            self._write(f"   {text} ({duration(now - self._began)})")

    def end(self, result: str) -> None:
        """The result, and how long the scene took."""
        self._write(f"   {result} ({duration(time.monotonic() - self._began)})")

    def _write(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)


class LivingView:
    """The finished scenes above, the present one with a table of what there is below."""

    def __init__(self, live: Live) -> None:
        """Draw into a live display."""
        self._live = live
        self._title = ""
        self._began = time.monotonic()

    def begin(self, title: str) -> None:
        """The title stands above the table until the scene ends."""
        self._title, self._began = title, time.monotonic()

    def show(self, sight: Sight) -> None:
        """The table as it is now."""
        heading = Text(f"{self._title} ({duration(time.monotonic() - self._began)})", style="bold")
        self._live.update(Group(heading, Text(sight.counts, style="dim"), Columns(_tables(sight))))

    def end(self, result: str) -> None:
        """The scene becomes two lines that stay, above what comes next."""
        took = duration(time.monotonic() - self._began)
        self._live.console.print(Text.assemble(("✓ ", "green"), self._title), Text(f"  {result} ({took})", style="dim"), sep="\n")


class BlindView:
    """Nobody watches."""

    def begin(self, title: str) -> None:
        """Nothing is shown."""

    def show(self, sight: Sight) -> None:
        """Nothing is shown."""

    def end(self, result: str) -> None:
        """Nothing is shown."""


def _tables(sight: Sight) -> list[RenderableType]:
    """The rows in columns of a length that fits most terminals."""
    return [_table(sight.columns, sight.rows[start : start + _ROWS]) for start in range(0, len(sight.rows), _ROWS)]


def _table(columns: Sequence[str], rows: Sequence[Row]) -> Table:
    table = Table(*columns)
    for row in rows:
        table.add_row(*row.cells, style="green" if row.is_right else "yellow")
    return table
