"""How measured values become figures: in units of the same run's calibration."""

from pathlib import Path

import pytest

from bench.calibration import Calibration
from bench.figures import AtMost, Exactly, Judged, Raw
from bench.run import Run

CALIBRATION = Calibration(creates_per_second=2_000, create_cpu_seconds=0.001)
TIME = Judged(name="time", unit="creates", bound=AtMost(limit=10_000))
CPU = Judged(name="CPU", unit="creates' CPU", bound=AtMost(limit=2))
CALLS = Judged(name="hook calls", bound=Exactly(count=3))


def run(*, divisor: int = 1, calibration: Calibration = CALIBRATION) -> Run:
    return Run(assets=Path(), calibration=calibration, divisor=divisor)


def test_time_is_judged_by_the_creates_that_fit_in_it() -> None:
    figure = run().judge_seconds(TIME, 4)

    assert (figure.value, figure.raw, figure.verdict) == (8_000, Raw(value=4, unit="s"), "holds")


def test_same_seconds_miss_the_bound_on_a_faster_machine() -> None:
    faster = Calibration(creates_per_second=4_000, create_cpu_seconds=0.0005)

    figure = run(calibration=faster).judge_seconds(TIME, 4)

    assert (figure.value, figure.verdict) == (16_000, "misses")


def test_cpu_is_judged_by_the_creates_that_cost_as_much() -> None:
    figure = run().judge_cpu(CPU, 0.0015)

    assert (figure.value, figure.raw, figure.verdict) == (1.5, Raw(value=1.5, unit="ms"), "holds")


def test_quick_run_has_a_tenth_of_the_size_and_no_bounds_on_ratios() -> None:
    quick = run(divisor=10)

    assert (quick.of(1_000), quick.of(3)) == (100, 1)
    assert (quick.judge_seconds(TIME, 100).verdict, quick.judge(CALLS, 4).verdict) == ("", "misses")


@pytest.mark.parametrize(("later", "steady"), [(2_200, True), (1_800, True), (2_400, False), (1_500, False)])
def test_calibration_is_steady_within_a_share_of_the_first(later: float, *, steady: bool) -> None:
    again = Calibration(creates_per_second=later, create_cpu_seconds=0.001)

    assert CALIBRATION.is_steady(again) is steady
