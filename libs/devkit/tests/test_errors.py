"""What the user sees of the log of a program that failed."""

from pathlib import Path

from metaloop.devkit.errors import StartFailed, tail_of


def test_the_tail_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(100_000)))

    assert tail_of(log).splitlines() == [f"line {number}" for number in range(99_988, 100_000)]


def test_a_short_log_is_its_own_tail(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\nlast\n")

    assert tail_of(log) == "first\nlast"


def test_the_tail_of_an_endless_last_line_is_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("ok\npanic: " + "x" * 70_000 + " and why\n")

    assert tail_of(log).endswith("x and why")


def test_a_missing_log_has_an_empty_tail(tmp_path: Path) -> None:
    assert tail_of(tmp_path / "log") == ""


def test_the_tail_is_indented_below_the_reason_and_long_lines_are_cut() -> None:
    failure = StartFailed("watcher", "it ended with exit code 1", tail="short\n" + "word " * 1000)

    first, second, third = str(failure).splitlines()
    assert first == "watcher did not start: it ended with exit code 1"
    assert second == "    short"
    assert (len(third) < 410, third[-4:]) == (True, " ...")
