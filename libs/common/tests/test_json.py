"""JSON: what is written, byte for byte, and how types are called in messages."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from orjson import Fragment

from metaloop.common.json import JSONDecodeError, JsonValue, dumps, dumps_sorted, is_array, is_object, loads, type_name

values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=8,
)


def shuffled(value: JsonValue, order: random.Random) -> JsonValue:
    """The same value, the keys of its objects in another order."""
    if is_object(value):
        keys = order.sample([*value], len(value))
        return {key: shuffled(value[key], order) for key in keys}
    return [shuffled(item, order) for item in value] if is_array(value) else value


@given(values)
def test_value_is_read_as_it_was_written(value: JsonValue):
    assert loads(dumps(value)) == loads(dumps_sorted(value)) == value


@given(values, st.randoms(use_true_random=False))
def test_equal_values_give_equal_sorted_bytes(value: JsonValue, order: random.Random):
    assert dumps_sorted(shuffled(value, order)) == dumps_sorted(value)


@given(values)
def test_fragment_is_embedded_as_it_stands(value: JsonValue):
    inner = b" %s " % dumps(value)

    assert dumps({"embedded": Fragment(inner)}) == b'{"embedded":%s}' % inner


def test_json_is_compact_and_not_escaped_beyond_need():
    assert dumps({"ä": [1, None, "ü\n"]}) == '{"ä":[1,null,"ü\\n"]}'.encode()


@pytest.mark.parametrize("raw", [b"", b"{", b"{'a':1}", b"[1,]", b"NaN", b"\xff", b"1 2"])
def test_bytes_that_are_not_json_are_refused(raw: bytes):
    with pytest.raises(JSONDecodeError):
        loads(raw)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({}, "an object"),
        ([], "a list"),
        ("", "a string"),
        (True, "a boolean"),
        (False, "a boolean"),
        (0, "a number"),
        (0.5, "a number"),
        (None, "null"),
    ],
    ids=repr,
)
def test_type_is_named_for_people(value: JsonValue, name: str):
    assert type_name(value) == name
