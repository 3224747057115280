"""Quantities that are written in different ways."""

import pytest

from metaloop.common.json import JsonValue
from metaloop.reconciler.core.apply.equality import is_same_quantity


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("1000m", "1", True),
        ("1", 1, True),
        (0.5, "500m", True),
        ("1Gi", "1024Mi", True),
        ("1.5Gi", "1536Mi", True),
        ("1k", "1e3", True),
        ("1E", "1e18", True),
        ("100n", "0.1u", True),
        ("+5", "5", True),
        ("5m", "5M", False),
        ("1Gi", "1G", False),
        ("-1", "1", False),
        # A string that is not a quantity equals only itself.
        ("1h", "3600s", False),
        ("1ki", "1024", False),
        ("", "0", False),
        (True, 1, False),
        (None, "0", False),
    ],
)
def test_quantities_are_compared_by_their_amount(*, left: JsonValue, right: JsonValue, expected: bool):
    assert is_same_quantity(left, right) is expected
    assert is_same_quantity(right, left) is expected
