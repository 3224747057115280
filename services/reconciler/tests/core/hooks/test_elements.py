"""A body that is split at the elements of its list has the same value as the whole, or the same error."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JSONDecodeError, JsonObject, JsonValue, dumps, loads
from metaloop.reconciler.core.hooks.body import SPLIT_BYTES, Body, body_of
from metaloop.reconciler.core.hooks.elements import split_at

texts = st.text(alphabet=st.sampled_from('ab"\\{}[],:\n\u2028é'))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts | st.just("children"), inner, max_size=4),
)


@given(st.dictionaries(texts | st.just("children"), values))
def test_split_body_has_the_value_of_the_whole(raw: JsonObject):
    assert split_at(dumps(raw), "children").joined() == raw


@given(st.lists(values), values)
def test_each_object_of_the_list_is_an_element(children: list[JsonValue], beside: JsonValue):
    wire = dumps({"before": beside, "children": children, "after": beside})

    elements = [loads(wire[span]) for span in split_at(wire, "children").spans]

    assert elements == [each for each in children if isinstance(each, dict)]


@given(st.dictionaries(texts | st.just("children"), values), st.data())
def test_damaged_body_has_the_value_or_the_error_of_the_whole(raw: JsonObject, data: st.DataObject):
    wire = dumps(raw)
    at = data.draw(st.integers(0, len(wire)))
    damaged = wire[:at] + data.draw(st.sampled_from([b"", b"{", b"}", b"[", b"]", b'"', b",", b"\\"])) + wire[at + 1 :]

    assert read_by(split_at(damaged, "children").joined) == read_by(lambda: loads(damaged))


def read_by(read: Callable[[], JsonValue]) -> JsonValue:
    """What is read, or why nothing can be."""
    try:
        return read()
    except JSONDecodeError as error:
        return str(error)


@pytest.mark.parametrize(
    "wire",
    [
        b'{"children":[{"a":1}],"children":[{"a":2},{"a":3}]}',
        b'{"\\u0063hildren":[{"a":1}]}',
        b'[{"children":[{"a":1}]}]',
        b'{"status":{"children":[{"a":1}]},"children":[[{"b":1}],{},null,0,"{"]}',
    ],
)
def test_unusual_body_has_the_value_of_the_whole(wire: bytes):
    assert split_at(wire, "children").joined() == loads(wire)


def answer(*children: bytes) -> bytes:
    return b'{"children":[%s],"status":{}}' % b",".join(children)


def strictly_read(wire: bytes) -> Body:
    """The body of a response that is so large that it is split. Its length is made up of white space."""
    return body_of(wire + b" " * SPLIT_BYTES, keys={"children", "status"}, is_strict=True, elements="children")


def test_numbers_in_the_elements_of_a_large_body_are_integers():
    read = strictly_read(answer(b'{"replicas":2.0}', b'{"replicas":3e0}'))

    assert repr(read.fields["children"]) == "[{'replicas': 2}, {'replicas': 3}]"


@pytest.mark.parametrize(
    ("wire", "problem"),
    [
        (b'{"children":[{"a":1}],"children":[]}', "children: appears more than once"),
        (b'{"children":[{"a":1}],"status":{},"status":{}}', "status: appears more than once"),
        (b'{"children":[{"a":1},]}', "is not JSON"),
        (b'{"children":[{"a":' + b"[" * 200 + b"]" * 200 + b"}]}", "nested more than"),
    ],
)
def test_strict_reading_of_a_large_body_finds_what_it_finds_in_a_small_one(wire: bytes, problem: str):
    with pytest.raises(InvalidAnswer, match=problem):
        strictly_read(wire)


def test_key_that_repeats_inside_of_elements_is_no_repetition():
    read = strictly_read(answer(b'{"status":1,"children":2}', b'{"status":1}'))

    assert read.fields["children"] == [{"status": 1, "children": 2}, {"status": 1}]
