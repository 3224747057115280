"""The table of `metaloop top`."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.devkit.cli.top import Reading, quantile, rows_of

INFINITE = float("inf")


def controller(name: str = "things", **changes: object) -> JsonObject:
    """What the view shows of a controller."""
    shown: JsonObject = {
        "controller": f"CompositeController {name}",
        "ready": True,
        "reason": "",
        "parents": 10,
        "failingParents": 1,
        "parts": 0,
        "waiting": 3,
        "inFlight": 2,
        "oldestSeconds": 1.25,
        "synced": 100,
        "retries": 4,
        "workedBuckets": [[0.1, 90], [1.0, 100], [None, 100]],
    }
    return shown | changes  # type: ignore[operator]


def reading(*controllers: JsonObject, at: float = 0.0) -> Reading:
    return Reading(at=at, controllers=controllers)


def test_first_table_has_no_rates_and_the_durations_of_all_syncs():
    assert rows_of(reading(controller()), since=None) == [
        ("CompositeController things", "yes", "10", "1", "0", "3", "2", "1.2s", "-", "-", "<0.1s", "<1s"),
    ]


def test_rates_and_durations_are_those_since_the_table_before():
    before = reading(controller(), at=10.0)
    now = reading(controller(synced=120, retries=5, workedBuckets=[[0.1, 90], [1.0, 120], [None, 120]]), at=12.0)

    [row] = rows_of(now, since=before)

    assert row[-4:] == ("10.0", "0.5", "<1s", "<1s")


def test_controller_that_did_nothing_since_has_no_durations():
    [row] = rows_of(reading(controller(), at=2.0), since=reading(controller()))

    assert row[-4:] == ("0.0", "0.0", "-", "-")


def test_counts_that_began_anew_are_taken_as_they_are():
    before = reading(controller())
    now = reading(controller(synced=2, workedBuckets=[[0.1, 2], [1.0, 2], [None, 2]]), at=2.0)

    [row] = rows_of(now, since=before)

    assert row[-4:] == ("0.0", "0.0", "<0.1s", "<0.1s")


def test_controllers_are_sorted_and_a_new_one_has_no_rates():
    rows = rows_of(reading(controller("z"), controller("a"), at=2.0), since=reading(controller("z")))

    assert [(row[0], row[8]) for row in rows] == [("CompositeController a", "-"), ("CompositeController z", "0.0")]


def test_reason_of_a_controller_that_is_not_ready_is_shown():
    [row] = rows_of(reading(controller(ready=False, reason="WaitingForCRD")), since=None)

    assert row[1] == "WaitingForCRD"


@pytest.mark.parametrize(("share", "bound"), [(0.5, 0.1), (0.95, 1.0), (1.0, INFINITE)])
def test_quantile_is_the_bound_that_holds_the_share(share: float, bound: float):
    assert quantile([(0.1, 90), (1.0, 99), (INFINITE, 100)], share) == bound


def test_nothing_has_no_quantile():
    assert quantile([], 0.5) == 0.0
    assert quantile([(0.1, 0), (INFINITE, 0)], 0.5) == 0.0
