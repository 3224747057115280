"""What annotations of ours on a controller come to."""

import pytest

from metaloop.common.api.instructions import max_concurrent


@pytest.mark.parametrize(("told", "expected"), [("5", 5), ("1", 1), ("0", None), ("-1", None), ("many", None), ("1.5", None), ("", None)])
def test_a_number_above_zero_limits_how_many_parents_are_in_work(told: str, expected: int | None):
    assert max_concurrent({"metadata": {"annotations": {"metaloop.dev/max-concurrent": told}}}) == expected


def test_without_annotation_any_number_may_be():
    assert max_concurrent({}) is None
