"""What users see of work under way, on a terminal and elsewhere."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

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


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.21, "4.2 s"), (9.96, "10 s"), (37.4, "37 s"), (59.6, "1 min 00 s"), (185.0, "3 min 05 s")]
)
def test_duration_is_written_as_people_do(seconds: float, text: str) -> None:
    assert console.duration(seconds) == text


async def test_work_is_named_at_its_start_and_its_result_at_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("counting") as progress:
        progress.done("counted")

    assert re.fullmatch(r"metaloop: counting \.\.\.\nmetaloop: counted \([0-9.]+ s\)\n", capsys.readouterr().err)


async def test_failed_work_has_no_result(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LookupError), console.progress("counting"):
        raise LookupError

    assert capsys.readouterr().err == "metaloop: counting ...\n"


def test_long_message_stays_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    console.message("word " * 100)

    assert capsys.readouterr().err.count("\n") == 1


def output_on_a_terminal(code: str) -> str:
    """What a Python program writes to stderr when that is a terminal."""
    terminal, stderr = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stderr=stderr, env={**os.environ, "TERM": "xterm"}):
        os.close(stderr)
        output = b"".join(chunks_of(terminal))
    os.close(terminal)
    return output.decode()


def chunks_of(terminal: int) -> Iterator[bytes]:
    with suppress(OSError):  # EIO: the program has closed its end
        while chunk := os.read(terminal, 4096):
            yield chunk


def test_live_line_on_a_terminal_shows_the_detail_and_leaves_messages_whole() -> None:
    shown = output_on_a_terminal(WORK)

    assert "metaloop: counting: 2 of 3" in shown
    assert "metaloop: a word in between\r\n" in shown
    assert re.search(r"metaloop: counted \([0-9.]+ s\)\r\n", shown)


def test_muted_console_prints_errors_alone() -> None:
    result = subprocess.run([sys.executable, "-c", MUTED], capture_output=True, text=True, check=True)

    assert result.stderr == "metaloop: error: it broke\n"
