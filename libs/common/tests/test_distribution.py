"""Counts of observations by size."""

from math import inf

import pytest

from metaloop.common.distribution import Distribution


def distribution(*values: float) -> Distribution:
    """The distribution of these values over two bounds."""
    found = Distribution((1.0, 10.0))
    for value in values:
        found.observe(value)
    return found


def test_observation_counts_up_to_each_bound_that_is_not_below_it():
    found = distribution(0.5, 1.0, 5.0, 100.0)

    assert [*found.cumulative()] == [(1.0, 2), (10.0, 3), (inf, 4)]


def test_sum_and_count_are_those_of_all_observations():
    found = distribution(0.5, 100.0)

    assert (found.sum, found.count) == (100.5, 2)


@pytest.mark.parametrize(("share", "bound"), [(0.25, 1.0), (0.5, 1.0), (0.75, 10.0), (1.0, inf)])
def test_quantile_is_the_bound_below_which_that_share_lies(share: float, bound: float):
    assert distribution(0.5, 1.0, 5.0, 100.0).quantile(share) == bound


def test_quantile_of_nothing_is_zero():
    assert distribution().quantile(0.99) == 0.0
