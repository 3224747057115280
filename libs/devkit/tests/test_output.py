"""What a scenario shows while it is played: lines where nobody watches, a table where somebody does."""

import io
import re
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live

from metaloop.devkit.demo.output import LiveOutput, NoOutput, Output, PlainOutput
from metaloop.devkit.demo.snapshot import Row


@dataclass(frozen=True)
class Pods:
    """A snapshot of Pods, by whether they are ready."""

    ready: tuple[bool, ...]

    @property
    def counts(self) -> str:
        return f"{sum(self.ready)} of {len(self.ready)} ready"

    @property
    def columns(self) -> tuple[str, ...]:
        return ("name", "state")

    @property
    def rows(self) -> list[Row]:
        return [Row(cells=(f"pod-{index}", str(ready)), is_right=ready) for index, ready in enumerate(self.ready)]


def play(output: Output, *snapshots: Pods) -> None:
    """One step of a scenario."""
    output.begin("three Pods are created")
    for snapshot in snapshots:
        output.show(snapshot)
    output.end("all of them are ready")


def plain(*snapshots: Pods) -> list[str]:
    """What is printed where there is no terminal."""
    out = io.StringIO()
    play(PlainOutput(Console(file=out, width=80)), *snapshots)
    return out.getvalue().splitlines()


def test_step_is_a_line_at_its_beginning_and_one_at_its_end() -> None:
    begin, end = plain()

    assert begin == "three Pods are created ..."
    assert re.fullmatch(r"   all of them are ready \(\d+\.\d s\)", end)


def test_quick_step_shows_no_progress_between() -> None:
    assert len(plain(Pods((True, False)), Pods((True, True)))) == 2


def test_long_line_stays_one_line() -> None:
    out = io.StringIO()

    PlainOutput(Console(file=out, width=20)).begin("a title that is wider than the console")

    assert out.getvalue() == "a title that is wider than the console ...\n"


def test_terminal_shows_the_snapshot_as_a_table_and_keeps_the_result() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        output = LiveOutput(live)
        output.begin("three Pods are created")
        output.show(Pods((True, False)))
        live.refresh()
        output.end("all of them are ready")

    shown = out.getvalue()
    assert "1 of 2 ready" in shown
    assert "pod-0" in shown
    assert "✓" in shown
    assert "all of them are ready (0.0 s)" in shown


def test_many_rows_stand_side_by_side() -> None:
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=True)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        LiveOutput(live).show(Pods((True,) * 25))
        live.refresh()

    heads = [line for line in out.getvalue().splitlines() if "name" in line]
    assert {line.count("name") for line in heads} == {3}


def test_no_output_is_no_output() -> None:
    play(NoOutput(), Pods((True,)))
