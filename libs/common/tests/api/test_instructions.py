"""Metaloop's own annotations on a controller."""

import pytest

from metaloop.common.api.instructions import max_concurrent


@pytest.mark.parametrize(("told", "expected"), [("5", 5), ("1", 1), ("0", None), ("-1", None), ("many", None), ("1.5", None), ("", None)])
def test_positive_number_limits_concurrent_syncs(told: str, expected: int | None):
    assert max_concurrent({"metadata": {"annotations": {"metaloop.dev/max-concurrent": told}}}) == expected


def test_without_annotation_concurrency_is_unlimited():
    assert max_concurrent({}) is None
