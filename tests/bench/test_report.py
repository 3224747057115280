"""What is printed: each figure with its bound, the seconds behind it, and its change since the last result."""

from datetime import UTC, datetime

import pytest

from bench.calibration import Calibration
from bench.comparison import BeforeAndAfter, Last
from bench.figures import AtMost, Figure, Raw
from bench.report import show, show_comparison, steadiness_text

TIME = Figure(name="time", value=17_700, unit="creates", bound=AtMost(limit=22_000), raw=Raw(value=7.7, unit="s"))
LAST = Last(date=datetime(2026, 1, 2, 3, 4, tzinfo=UTC), figures={("time", "creates"): 15_000})


def test_row_shows_ratio_bound_seconds_change_and_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    show("create", [TIME], last=LAST)

    title, _, row = capsys.readouterr().out.splitlines()
    assert title.strip() == "create (last recorded 2026-01-02 03:04)"
    assert row.split() == ["time", "17,700", "creates", "<=", "22,000", "7.7", "s", "1.18", "holds"]


def test_row_of_several_runs_shows_the_lowest_and_the_highest(capsys: pytest.CaptureFixture[str]) -> None:
    show("create", [Figure(name="CPU", value=5, unit="ms", runs=(4, 5, 7))], last=None)

    _, headings, row = capsys.readouterr().out.splitlines()
    assert headings.split()[:4] == ["figure", "measured", "lowest", "highest"]
    assert row.split() == ["CPU", "5", "ms", "4", "7", "-"]


def test_comparison_shows_medians_with_their_range(capsys: pytest.CaptureFixture[str]) -> None:
    show_comparison("create", [BeforeAndAfter(name="CPU", unit="ms", before=(4, 5, 9), after=(5, 6, 7))])

    row = capsys.readouterr().out.splitlines()[-1]
    assert row.split() == ["CPU", "(ms)", "5", "(4-9)", "6", "(5-7)", "1.200"]


def test_machine_that_changed_too_much_is_said_to_make_ratios_unsound() -> None:
    first, later = (Calibration(creates_per_second=rate, create_cpu_seconds=0.001) for rate in (2_000, 1_000))

    assert steadiness_text(first, first) == "calibration at the end: +0 % creates a second"
    assert "say little" in steadiness_text(first, later)
