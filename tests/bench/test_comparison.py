"""The column beside the last recorded result, and the comparison of two checkouts."""

from collections.abc import Mapping
from datetime import UTC, datetime

from bench.comparison import BeforeAndAfter, Last, Record, before_and_after, column, last_of
from bench.figures import AtMost, Figure


def recorded(day: int, value: float, *, scenario: str = "create", quick: bool = False) -> Record:
    figures = {("time", "creates"): value}
    return Record(date=datetime(2026, 1, day, tzinfo=UTC), quick=quick, scenarios={scenario: figures})


def last(figures: Mapping[tuple[str, str], float]) -> Last:
    return Last(date=datetime(2026, 1, 1, tzinfo=UTC), figures=figures)


def figure(value: float, *, unit: str = "creates") -> Figure:
    return Figure(name="time", value=value, unit=unit)


def test_last_result_is_the_newest_of_the_same_scenario() -> None:
    records = [recorded(1, 10), recorded(3, 30), recorded(2, 20), recorded(4, 40, scenario="update")]

    found = last_of("create", records)

    assert found is not None
    assert found.figures == {("time", "creates"): 30}


def test_quick_runs_are_no_measure_for_full_ones() -> None:
    records = [recorded(1, 10), recorded(2, 20, quick=True)]

    found = last_of("create", records)

    assert found is not None
    assert found.date.day == 1


def test_scenario_that_was_never_recorded_has_no_last_result() -> None:
    assert last_of("create", [recorded(1, 10, scenario="update")]) is None


def test_column_shows_now_in_times_of_the_last_result() -> None:
    assert column([figure(120)], last({("time", "creates"): 100})) == ["1.20"]


def test_equal_values_are_shown_as_equal() -> None:
    assert column([figure(0), figure(3)], last({("time", "creates"): 0})) == ["=", "was 0"]


def test_column_is_dashes_without_an_earlier_record() -> None:
    assert column([figure(120), figure(3)], None) == ["-", "-"]


def test_figure_that_was_in_seconds_is_not_compared_with_one_in_creates() -> None:
    assert column([figure(20_000)], last({("time", "s"): 9})) == ["-"]


def test_figure_that_describes_the_machine_is_not_compared() -> None:
    cores = Figure(name="CPU of others", value=1, unit="cores", is_compared=False)

    assert column([cores], last({("CPU of others", "cores"): 0.5})) == [""]


def test_change_since_the_last_result_does_not_decide_the_verdict() -> None:
    now = Figure(name="time", value=99, unit="creates", bound=AtMost(limit=100))

    assert column([now], last({("time", "creates"): 10})) == ["9.90"]
    assert now.verdict == "holds"


def test_two_checkouts_are_compared_by_the_medians_of_their_runs() -> None:
    before, after = [recorded(1, value) for value in (10, 12, 90)], [recorded(2, value) for value in (6, 1, 7)]

    (row,) = before_and_after(before, after, "create")

    assert row == BeforeAndAfter(name="time", unit="creates", before=(10, 12, 90), after=(6, 1, 7))
    assert row.ratio == 0.5


def test_figure_that_one_checkout_does_not_measure_is_left_out() -> None:
    other = Record(date=datetime(2026, 1, 1, tzinfo=UTC), quick=False, scenarios={"create": {("other", ""): 1}})

    assert before_and_after([recorded(1, 10)], [other], "create") == []


def test_there_is_no_ratio_to_zero() -> None:
    assert BeforeAndAfter(name="reads", unit="", before=(0,), after=(1,)).ratio is None
