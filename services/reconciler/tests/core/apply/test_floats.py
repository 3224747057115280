"""Floats are found in long configurations as they are in short ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.apply.configuration import has_float
from metaloop.reconciler.core.apply.last_applied import applied_configuration

scalars = st.none() | st.booleans() | st.integers() | st.text()


def trees(leaves: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    return st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


@given(trees(scalars))
def test_without_a_float_none_is_found(value: JsonValue):
    assert not has_float(value)


@given(trees(scalars), st.floats(), st.lists(st.booleans(), max_size=6))
def test_float_is_found_however_deep_it_is(beside: JsonValue, number: float, path: list[bool]):
    value: JsonValue = number
    for is_list in path:
        value = [beside, value] if is_list else {"beside": beside, "value": value}

    assert has_float(value)


@pytest.mark.parametrize("length", [1, 10_000])
@pytest.mark.parametrize(("number", "stored"), [(2.0, 2), (2.5, 2.5), (2, 2)])
def test_whole_number_is_an_integer_beside_a_text_of_any_length(length: int, number: float, stored: float):
    desired: JsonObject = {"kind": "Gadget", "metadata": {"name": "a"}, "spec": {"text": "x" * length, "number": number}}

    spec = unstructured.child_object(applied_configuration(desired), "spec")

    assert (spec["number"], type(spec["number"])) == (stored, type(stored))


@pytest.mark.parametrize("length", [1, 10_000])
def test_text_that_looks_like_a_number_stays_as_it_is(length: int):
    desired: JsonObject = {"kind": "Gadget", "metadata": {"name": "a"}, "spec": {"text": "x" * length, "looks": ":2.0"}}

    assert applied_configuration(desired) is desired
