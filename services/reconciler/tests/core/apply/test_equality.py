"""When two JSON values mean the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import JsonObject, JsonValue
from metaloop.reconciler.core.apply.equality import same

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 0.5]) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (1, 1.0, True),
        (1, 1.5, False),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        ("", None, False),
        ({"a": None}, {}, True),
        ({"a": None}, {"b": None}, True),
        ({"a": 1}, {}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        ([1], [1, None], False),
        ([{"a": None}], [{}], True),
        ({}, [], False),
        ({}, None, False),
    ],
)
def test_values_mean_the_same_or_not(*, left: JsonValue, right: JsonValue, expected: bool):
    assert same(left, right) is expected
    assert same(right, left) is expected


@given(value=json_values)
def test_a_value_means_the_same_as_itself(value: JsonValue):
    assert same(value, value)


@given(left=json_values, right=json_values)
def test_meaning_the_same_is_mutual(left: JsonValue, right: JsonValue):
    assert same(left, right) == same(right, left)


@given(obj=st.dictionaries(st.sampled_from("abc"), json_values))
def test_nulls_may_be_left_out(obj: JsonObject):
    assert same(obj, {key: value for key, value in obj.items() if value is not None})
