"""What the services' own metric says of their event loops."""

import pytest

from bench.loops import Turns, lags_in, peak_in, turns_between

EXPOSITION = """\
# TYPE metaloop_event_loop_lag_seconds histogram
metaloop_event_loop_lag_seconds_bucket{le="0.1"} 7.0
metaloop_event_loop_lag_seconds_bucket{le="0.25"} 8.0
metaloop_event_loop_lag_seconds_bucket{le="+Inf"} 8.0
metaloop_other_seconds_bucket{le="0.1"} 1.0
"""
NONE = {0.05: 10.0, 0.1: 10.0, 0.25: 10.0, float("inf"): 10.0}


def test_buckets_are_read_from_the_exposition() -> None:
    assert lags_in(EXPOSITION) == {0.1: 7.0, 0.25: 8.0, float("inf"): 8.0}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({0.05: 30.0, 0.1: 30.0, 0.25: 30.0, float("inf"): 30.0}, Turns(longest=0.05, long=0)),
        ({0.05: 29.0, 0.1: 30.0, 0.25: 30.0, float("inf"): 30.0}, Turns(longest=0.1, long=0)),
        ({0.05: 20.0, 0.1: 27.0, 0.25: 30.0, float("inf"): 30.0}, Turns(longest=0.25, long=3)),
        ({0.05: 20.0, 0.1: 27.0, 0.25: 29.0, float("inf"): 30.0}, Turns(longest=float("inf"), long=3)),
        (NONE, Turns(longest=0.05, long=0)),
    ],
)
def test_turns_are_those_between_two_readings(after: dict[float, float], expected: Turns) -> None:
    assert turns_between(NONE, after) == expected


def test_a_service_that_was_started_in_between_has_only_new_turns() -> None:
    assert turns_between({}, {0.1: 1.0, float("inf"): 2.0}) == Turns(longest=float("inf"), long=1)


def test_peak_of_a_process_is_in_bytes() -> None:
    assert peak_in("VmPeak:\t  900 kB\nVmHWM:\t    12 kB\nVmRSS:\t   8 kB\n") == 12 * 1024
    with pytest.raises(ValueError, match="VmHWM"):
        peak_in("")
