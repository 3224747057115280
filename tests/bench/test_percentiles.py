"""Latencies in round trips of the changes that caused them."""

from pathlib import Path

import pytest

from bench.calibration import Calibration
from bench.figures import AtMost, Judged
from bench.percentiles import Percentile, percentile
from bench.run import Run

RUN = Run(assets=Path(), calibration=Calibration(creates_per_second=1.0, create_cpu_seconds=1.0))
ROW = Judged(name="hook", unit="round trips", bound=AtMost(limit=2))


@pytest.mark.parametrize(("percent", "value"), [(50, 51), (99, 100), (0, 1)])
def test_percentile_is_a_value_that_was_measured(percent: int, value: float) -> None:
    assert percentile([float(each) for each in range(100, 0, -1)], percent) == value


def test_percentile_of_one_value_is_that_value() -> None:
    assert percentile([3.0], 99) == 3.0


@pytest.mark.parametrize(("seconds", "verdict"), [(0.015, "holds"), (0.025, "misses")])
def test_latency_is_judged_in_round_trips_of_the_same_percentile(seconds: float, verdict: str) -> None:
    figure = Percentile.of([0.001, 0.01], 99).judge(RUN, ROW, [seconds])

    assert figure.value == pytest.approx(seconds / 0.01)
    assert figure.verdict == verdict
    assert figure.raw is not None
    assert figure.raw.value == pytest.approx(1_000 * seconds)


def test_round_trip_itself_is_shown_in_milliseconds() -> None:
    figure = Percentile.of([0.002], 50).figure

    assert (figure.name, figure.unit) == ("round trip of a change, p50", "ms")
    assert figure.value == pytest.approx(2)
