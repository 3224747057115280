from dataclasses import replace

import pytest

from metaloop.common.faults import Result
from metaloop.common.testing.builders import job_key, sync_report
from metaloop.watcher.core.backoff import LONGEST_SECONDS, Next, backoff_seconds, try_after


@pytest.mark.parametrize(("failures", "seconds"), [(1, 0.005), (2, 0.01), (3, 0.02), (11, 5.12), (18, 655.36), (19, 1000), (10_000, 1000)])
def test_backoff_doubles_from_five_milliseconds_and_is_capped(failures: int, seconds: float):
    assert backoff_seconds(failures) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("result", "after_seconds", "expected"),
    [
        ("done", None, Next(0, None)),
        ("retry", None, Next(4, 0.04)),
        ("retry", 30.0, Next(4, 0.04)),
        ("retry", 0.03, Next(4, 0.03)),
        ("throttled", 7.0, Next(3, 7.0)),
        ("throttled", 0.0, Next(3, 0.0)),
        ("throttled", None, Next(4, 0.04)),
        ("rejected", None, Next(4, LONGEST_SECONDS)),
    ],
)
def test_what_follows_from_a_report_after_three_failures(result: Result, after_seconds: float | None, expected: Next):
    report = replace(sync_report(job_key(), "lease", result=result), after_seconds=after_seconds)

    assert try_after(report, failures=3) == expected


def test_a_sync_that_nobody_reported_on_counts_as_failed():
    assert try_after(None, failures=0) == Next(1, 0.005)
