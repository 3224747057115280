"""What the person at the terminal sees of work under way, on a terminal and elsewhere."""

import os
import pty
import subprocess
import sys

import pytest

from metaloop.devkit import console

WORK = """
import asyncio
from metaloop.devkit import console

async def work():
    with console.progress("counting") as progress:
        progress.update("2 of 3")
        await asyncio.sleep(0.3)
        console.message("a word in between")
        progress.done("counted")

asyncio.run(work())
"""

MUTED = """
from metaloop.devkit import console
console.mute()
console.message("a part has ended")
console.error("it broke")
"""


@pytest.mark.parametrize(("seconds", "text"), [(4.21, "4.2 s"), (37.4, "37 s"), (185.0, "3 min 05 s")])
def test_duration_is_written_as_people_do(seconds: float, text: str) -> None:
    assert console.duration(seconds) == text


async def test_work_is_named_at_its_start_and_its_result_at_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("counting") as progress:
        progress.done("counted")

    assert capsys.readouterr().err == "metaloop: counting ...\nmetaloop: counted (0.0 s)\n"


async def test_failed_work_has_no_result(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LookupError), console.progress("counting"):
        raise LookupError

    assert capsys.readouterr().err == "metaloop: counting ...\n"


def test_long_message_stays_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    console.message("word " * 100)

    assert capsys.readouterr().err.count("\n") == 1


def test_live_line_on_a_terminal_shows_the_detail_and_makes_room_for_messages() -> None:
    terminal, stderr = pty.openpty()
    subprocess.run([sys.executable, "-c", WORK], stderr=stderr, env={**os.environ, "TERM": "xterm"}, check=True)

    shown = os.read(terminal, 65536).decode()

    os.close(terminal)
    os.close(stderr)
    assert "metaloop: counting: 2 of 3" in shown
    assert "metaloop: a word in between\r\n" in shown
    assert "metaloop: counted (0.3 s)\r\n" in shown


def test_muted_console_prints_errors_alone() -> None:
    result = subprocess.run([sys.executable, "-c", MUTED], capture_output=True, text=True, check=True)

    assert result.stderr == "metaloop: error: it broke\n"
