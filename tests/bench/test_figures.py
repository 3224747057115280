"""Which bounds hold, and what becomes of the figures of several runs."""

import pytest

from bench.figures import (
    AtLeast,
    AtMost,
    Bound,
    Exactly,
    Figure,
    Judged,
    Raw,
    bound_text,
    summary_of,
    without_ratio_bounds,
)

TIME = Judged(name="time", unit="creates", bound=AtMost(limit=100))
WRITES = Judged(name="writes per parent", bound=Exactly(count=5))


@pytest.mark.parametrize(
    ("bound", "value", "verdict"),
    [
        (AtMost(limit=100), 100, "holds"),
        (AtMost(limit=100), 100.001, "misses"),
        (AtLeast(limit=0.25), 0.25, "holds"),
        (AtLeast(limit=0.25), 0.249, "misses"),
        (Exactly(count=5), 5, "holds"),
        (Exactly(count=0), 0, "holds"),
        (None, 5, ""),
    ],
)
def test_bound_decides_the_verdict(bound: Bound | None, value: float, verdict: str) -> None:
    assert Figure(name="figure", value=value, bound=bound).verdict == verdict


@pytest.mark.parametrize("writes", [4_999, 5_001])
def test_one_write_more_or_less_of_thousands_misses_an_exact_count(writes: int) -> None:
    assert WRITES.figure(writes / 1_000).verdict == "misses"


def test_seconds_behind_a_ratio_do_not_decide_its_verdict() -> None:
    slow_machine = TIME.figure(99, raw=Raw(value=3_600, unit="s"))

    assert slow_machine.verdict == "holds"


def test_run_of_another_size_is_judged_by_exact_counts_alone() -> None:
    time, writes = without_ratio_bounds(TIME.figure(500)), without_ratio_bounds(WRITES.figure(6))

    assert (time.verdict, writes.verdict) == ("", "misses")


@pytest.mark.parametrize(
    ("bound", "text"),
    [(AtMost(limit=1.1), "<= 1.1"), (AtMost(limit=21_000), "<= 21,000"), (AtLeast(limit=2), ">= 2"), (Exactly(count=3), "= 3"), (None, "")],
)
def test_bound_is_printed_with_its_sign(bound: Bound | None, text: str) -> None:
    assert bound_text(bound) == text


def test_several_runs_are_judged_by_their_median() -> None:
    runs = [[TIME.figure(value, raw=Raw(value=value / 10, unit="s"))] for value in (130, 90, 80)]

    (time,) = summary_of(runs)

    assert (time.value, time.runs, time.verdict) == (90, (130, 90, 80), "holds")
    assert time.raw == Raw(value=9, unit="s")


def test_one_run_with_a_wrong_count_misses_for_all() -> None:
    (writes,) = summary_of([[WRITES.figure(value)] for value in (5, 5.001, 5)])

    assert (writes.value, writes.verdict) == (5.001, "misses")


def test_single_run_is_its_own_summary() -> None:
    figures = [TIME.figure(90), WRITES.figure(5)]

    assert summary_of([figures]) == figures


def test_runs_that_measured_different_figures_have_no_summary() -> None:
    with pytest.raises(ValueError, match="different figures"):
        summary_of([[TIME.figure(90)], [WRITES.figure(5)]])
