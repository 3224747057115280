"""Bodies of the API server's answers: which are read, and which are reported as unreadable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import JsonObject, JsonValue, dumps
from metaloop.common.kube.body import json_of, object_of
from metaloop.common.kube.errors import Unreadable

objects = st.dictionaries(st.text(max_size=3), st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3))


@given(objects)
def test_object_is_read_as_it_was_sent(sent: JsonObject):
    assert object_of(dumps(sent)) == json_of(dumps(sent)) == sent


@pytest.mark.parametrize("raw", [b"[]", b"null", b"1", b'"text"', b"true"])
def test_value_that_is_no_object_is_unreadable_as_one(raw: bytes):
    with pytest.raises(Unreadable, match="did not send an object"):
        object_of(raw)


@pytest.mark.parametrize(
    ("raw", "value"),
    [(b'"\xff"', "\ufffd"), (b'{"a":"b\x80c"}', {"a": "b\ufffdc"}), (b'["\xe4", 1]', ["\ufffd", 1])],
    ids=["text", "object", "list"],
)
def test_bytes_that_are_not_utf_8_are_replaced(raw: bytes, value: JsonValue):
    assert json_of(raw) == value


@pytest.mark.parametrize("raw", [b"", b"{", b"<html>", b"\xff\xfe", b'{"a":1}{}', b"NaN"])
def test_bytes_that_are_not_json_are_unreadable(raw: bytes):
    with pytest.raises(Unreadable, match="did not send JSON"):
        json_of(raw)


@given(st.binary(min_size=1, max_size=50).map(lambda part: b"<" + part * 100))
def test_message_quotes_only_the_beginning_of_what_was_sent(raw: bytes):
    with pytest.raises(Unreadable) as caught:
        json_of(raw)

    assert repr(raw[:100]) in str(caught.value)
    assert len(str(caught.value)) < 500
