"""What holds of any figures: their bounds, their summaries and calibrations, and the files that they are written to."""

import statistics
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import bounds, results
from bench.calibration import Calibration
from bench.comparison import column, last_of
from bench.figures import AtLeast, AtMost, Exactly, Figure, Judged, Raw, is_within, summary_of, without_ratio_bounds

VALUES = st.floats(min_value=0, max_value=1e9, allow_nan=False)
RUNS = st.lists(VALUES, min_size=2, max_size=7)
COUNTS = st.integers(min_value=0, max_value=10)
RATES = st.floats(min_value=1, max_value=1e5)
ROWS = {name: row for name, row in vars(bounds).items() if isinstance(row, Judged)}
TIMES = Judged(name="time", unit="creates", bound=AtMost(limit=100))


def calibration(rate: float) -> Calibration:
    return Calibration(creates_per_second=rate, create_cpu_seconds=1 / rate)


@given(value=VALUES, limit=VALUES)
def test_value_keeps_one_of_two_opposite_bounds_and_both_only_at_the_limit(value: float, limit: float) -> None:
    below, above = is_within(AtMost(limit=limit), value), is_within(AtLeast(limit=limit), value)

    assert below or above
    assert (below and above) == is_within(Exactly(count=limit), value)


@given(values=RUNS)
def test_summary_of_ratios_holds_if_most_of_the_runs_do(values: list[float]) -> None:
    (summary,) = summary_of([[TIMES.figure(value)] for value in values])

    held = sum(TIMES.figure(value).verdict == "holds" for value in values)
    assert summary.runs == tuple(values)
    assert min(values) <= summary.value <= max(values)
    if 2 * held != len(values):
        assert summary.verdict == ("holds" if 2 * held > len(values) else "misses")


@given(counts=st.lists(COUNTS, min_size=2, max_size=7), expected=COUNTS)
def test_summary_of_counts_holds_only_if_every_run_does(counts: list[int], expected: int) -> None:
    row = Judged(name="writes", bound=Exactly(count=expected))

    (summary,) = summary_of([[row.figure(count)] for count in counts])

    assert (summary.verdict == "holds") == (set(counts) == {expected})
    assert summary.value in {*counts, expected}


@given(raws=st.lists(st.none() | VALUES, min_size=2, max_size=5))
def test_raw_value_of_a_summary_is_the_median_of_the_runs_that_have_one(raws: list[float | None]) -> None:
    runs = [[Figure(name="f", value=1, raw=None if raw is None else Raw(value=raw, unit="s"))] for raw in raws]

    (summary,) = summary_of(runs)

    known = [raw for raw in raws if raw is not None]
    assert summary.raw == (Raw(value=statistics.median(known), unit="s") if known else None)


def test_runs_with_different_numbers_of_figures_have_no_summary() -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        summary_of([[TIMES.figure(1)], []])


@given(seconds=VALUES, rate=RATES)
def test_time_in_creates_is_independent_of_the_machine(seconds: float, rate: float) -> None:
    here, twice_as_fast = calibration(rate), calibration(2 * rate)

    assert here.creates_in(seconds) == pytest.approx(twice_as_fast.creates_in(seconds / 2))
    assert here.creates_worth(seconds) == pytest.approx(twice_as_fast.creates_worth(seconds / 2))


@given(rate=RATES, later=RATES)
def test_change_of_the_machine_is_its_new_speed_relative_to_the_old(rate: float, later: float) -> None:
    change = calibration(rate).change_to(calibration(later))

    assert (1 + change) * rate == pytest.approx(later)
    assert calibration(rate).is_steady(calibration(rate))
    assert (change > 0) == (later > rate) or later == pytest.approx(rate)


@pytest.mark.parametrize("name", ROWS)
def test_exact_rows_have_whole_numbers_and_ratios_have_positive_limits(name: str) -> None:
    match ROWS[name].bound:
        case Exactly(count=count):
            assert count == int(count) >= 0
        case AtMost(limit=limit) | AtLeast(limit=limit):
            assert limit > 0


@pytest.mark.parametrize("name", ROWS)
def test_no_bound_is_in_units_that_depend_on_the_machine(name: str) -> None:
    assert {"s", "ms", "us", "B", "KB", "MB", "MiB"}.isdisjoint(ROWS[name].unit.split())


@pytest.mark.parametrize("name", ROWS)
def test_quick_run_keeps_the_exact_bounds_of_the_table(name: str) -> None:
    row = ROWS[name]

    judged = without_ratio_bounds(row.figure(1e12))

    assert judged.verdict == ("misses" if isinstance(row.bound, Exactly) else "")


NAMED = st.tuples(st.text(min_size=1, max_size=20), st.sampled_from(["", "creates", "x"]), VALUES)
FIGURES = st.lists(NAMED, min_size=1, max_size=5, unique_by=lambda named: named[:2])


@given(named=FIGURES)
def test_recorded_figures_are_read_as_they_were_written(named: list[tuple[str, str, float]]) -> None:
    figures = [Figure(name=name, unit=unit, value=value) for name, unit, value in named]
    with tempfile.TemporaryDirectory() as folder:
        path = results.write(Path(folder), {"create": figures}, calibrations=[calibration(2_000)], quick=False)
        record = results.read(path)

    assert record.scenarios == {"create": {(name, unit): pytest.approx(value, abs=1e-6) for name, unit, value in named}}
    assert not record.quick


@given(named=FIGURES)
def test_whole_figures_equal_their_own_record(named: list[tuple[str, str, float]]) -> None:
    figures = [Figure(name=name, unit=unit, value=round(value)) for name, unit, value in named]
    with tempfile.TemporaryDirectory() as folder:
        results.write(Path(folder), {"create": figures}, calibrations=[], quick=False)
        last = last_of("create", results.read_all(Path(folder)))

    assert column(figures, last) == ["="] * len(figures)


@pytest.mark.parametrize(("quick", "ending"), [(True, "-quick.json"), (False, ".json")])
def test_file_of_a_quick_run_is_told_by_its_name(tmp_path: Path, *, quick: bool, ending: str) -> None:
    path = results.write(tmp_path / "new", {}, calibrations=[], quick=quick)

    assert path.name.endswith(ending)
    assert ("quick" in path.name) is quick
    assert [record.quick for record in results.read_all(tmp_path / "new")] == [quick]
