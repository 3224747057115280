"""The responses of sync hooks: which are answers, and which are not."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from builders import EMPTY_ANSWER
from hypothesis import given, settings
from hypothesis import strategies as st

from metaloop.common.api import composite, decorator
from metaloop.common.api.hook import HookKeys
from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JsonValue, dumps
from metaloop.reconciler.core.hooks.answer import LEAST_RESYNC_SECONDS, sync_answer
from metaloop.reconciler.core.hooks.body import MAX_NESTING, QUOTED_KEYS, QUOTED_LENGTH
from metaloop.reconciler.core.model import Answer


@pytest.mark.parametrize("is_strict", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b" {}\n",
        b'{"children": null}',
        b'{"children": []}',
        b'{"status": null, "children": null, "resyncAfterSeconds": null, "finalized": null}',
        b'{"resyncAfterSeconds": 0}',
        b'{"resyncAfterSeconds": -3}',
        b'{"finalized": false}',
    ],
)
def test_empty_and_null_fields_are_an_answer(*, body: bytes, is_strict: bool):
    assert sync_answer(body, is_strict=is_strict, keys=composite.KEYS) == EMPTY_ANSWER


def test_whole_answer_is_read():
    body = b'{"status": {"a": 1}, "children": [{"kind": "Pod", "x": null}], "resyncAfterSeconds": 1.5, "finalized": true}'

    assert sync_answer(body, is_strict=True, keys=composite.KEYS) == replace(
        EMPTY_ANSWER, status={"a": 1}, children=({"kind": "Pod", "x": None},), resync_after_seconds=1.5, finalized=True
    )


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (b"9223372036854775807", "9223372036854775807"),
        (b"2.0", "2"),
        (b"-2.00", "-2"),
        (b"2e0", "2"),
        (b"1.5E1", "15"),
        (b"0.0", "0"),
        (b"1.5", "1.5"),
        (b"1.05", "1.05"),
        (b'"2.0"', "'2.0'"),
        (b"[2.0, [1.0]]", "[2, [1]]"),
        (b'{"a": 2.0}', "{'a': 2}"),
        (b"1e300", "1e+300"),
        (b"true", "True"),
    ],
)
def test_whole_numbers_are_integers_however_they_are_written(number: bytes, expected: str):
    answer = sync_answer(b'{"status": {"number": ' + number + b"}}", is_strict=True, keys=composite.KEYS)

    assert repr(answer.status) == f"{{'number': {expected}}}"


GARBAGE: dict[str, tuple[bytes, str]] = {
    # what it is: (the body, the field that is named)
    "nothing": (b"", ""),
    "only blanks": (b" \n", ""),
    "a web page": (b"<html><body>It works!</body></html>", ""),
    "half an answer": (b'{"children": [', ""),
    "two answers": (b"{}{}", ""),
    "null": (b"null", ""),
    "a list": (b"[]", ""),
    "a string": (b'"ok"', ""),
    "a number": (b"1", ""),
    "not UTF-8": (b'{"status": {"a": "\xff"}}', ""),
    "NaN": (b'{"resyncAfterSeconds": NaN}', ""),
    "a null child": (b'{"children": [null]}', "children[0]"),
    "a child that is a list": (b'{"children": [{"kind": "A"}, []]}', "children[1]"),
    "a child without kind": (b'{"children": [{"apiVersion": "v1"}]}', "children[0].kind"),
    "a child with an empty kind": (b'{"children": [{"kind": ""}]}', "children[0].kind"),
    "a child whose kind is a number": (b'{"children": [{"kind": 1}]}', "children[0].kind"),
    "children as an object": (b'{"children": {"a": {}}}', "children"),
    "children as a string": (b'{"children": "none"}', "children"),
    "a status that is a string": (b'{"status": "ok"}', "status"),
    "a status that is a list": (b'{"status": []}', "status"),
    "a resync as text": (b'{"resyncAfterSeconds": "10"}', "resyncAfterSeconds"),
    "a resync that is true": (b'{"resyncAfterSeconds": true}', "resyncAfterSeconds"),
    "finalized as text": (b'{"finalized": "true"}', "finalized"),
    "finalized as a number": (b'{"finalized": 1}', "finalized"),
}


@pytest.mark.parametrize("is_strict", [False, True])
@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_no_answer_and_the_field_is_named(*, garbage: tuple[bytes, str], is_strict: bool):
    body, field = garbage

    with pytest.raises(InvalidAnswer) as caught:
        sync_answer(body, is_strict=is_strict, keys=composite.KEYS)

    assert caught.value.field == field


def test_misspelt_key_is_named_when_read_loosely():
    answer = sync_answer(b'{"children": [], "finalised": true, "Status": {}}', is_strict=False, keys=composite.KEYS)

    assert answer.unknown_keys == ("Status", "finalised")


@pytest.mark.parametrize(
    ("body", "keys", "field"),
    [
        (b'{"childern": []}', composite.KEYS, "childern"),
        (b'{"another": 1, "Children": [], "zoo": 2}', composite.KEYS, "Children"),
        (b'{"status": {}, "note": "x"}', composite.KEYS, "note"),
        (b'{"attachments": []}', composite.KEYS, "attachments"),
        (b'{"children": []}', decorator.KEYS, "children"),
        (b'{"labels": {}, "attachment": []}', decorator.KEYS, "attachment"),
        (b'{"finalized": false, "childern": []}', composite.KEYS, "childern"),
    ],
)
def test_unknown_key_in_place_of_the_children_is_refused(body: bytes, keys: HookKeys, field: str):
    with pytest.raises(InvalidAnswer, match=f"lacks {keys.children}: all {keys.children} would be deleted") as caught:
        sync_answer(body, is_strict=False, keys=keys)

    assert caught.value.field == field


@pytest.mark.parametrize("body", [b'{"children": null, "note": 1}', b'{"finalized": true, "note": 1}'])
def test_unknown_key_beside_the_children_or_after_the_end_is_only_named(body: bytes):
    assert sync_answer(body, is_strict=False, keys=composite.KEYS).unknown_keys == ("note",)


@pytest.mark.parametrize(("wanted", "obeyed"), [(b"1e-9", 0.1), (b"0.1", 0.1), (b"0.25", 0.25), (b"3600", 3600.0)])
def test_resync_comes_no_sooner_than_a_tenth_of_a_second(wanted: bytes, obeyed: float):
    answer = sync_answer(b'{"resyncAfterSeconds": %s}' % wanted, is_strict=False, keys=composite.KEYS)

    assert answer.resync_after_seconds == obeyed


def test_misspelt_key_is_refused_when_read_strictly():
    with pytest.raises(InvalidAnswer, match="childern"):
        sync_answer(b'{"childern": []}', is_strict=True, keys=composite.KEYS)


@pytest.mark.parametrize("body", [b'{"children": [], "children": []}', b'{"status": {}, "st\\u0061tus": {}}'])
def test_repeated_key_is_refused_when_read_strictly(body: bytes):
    with pytest.raises(InvalidAnswer, match="more than once"):
        sync_answer(body, is_strict=True, keys=composite.KEYS)


def test_repeated_key_counts_last_when_read_loosely():
    assert sync_answer(b'{"status": {"a": 1}, "status": {"a": 2}}', is_strict=False, keys=composite.KEYS).status == {"a": 2}


def test_keys_of_the_answer_may_be_keys_within_a_child():
    body = b'{"status": {}, "children": [{"kind": "A", "status": {"children": [], "status": "x"}, "unknown": 1, "unknown": 2}]}'

    assert len(sync_answer(body, is_strict=True, keys=composite.KEYS).children) == 1


def test_answer_that_is_nested_too_deep_is_refused():
    deep = b'{"status": {"a": ' + b"[" * MAX_NESTING + b"]" * MAX_NESTING + b"}}"

    with pytest.raises(InvalidAnswer, match="nested"):
        sync_answer(deep, is_strict=False, keys=composite.KEYS)


def test_many_brackets_side_by_side_are_no_depth():
    wide = dumps({"status": {"list": [[] for _ in range(MAX_NESTING * 3)]}})

    assert sync_answer(wide, is_strict=False, keys=composite.KEYS).status is not None


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
A_CHILD = st.fixed_dictionaries(
    {"kind": st.text(min_size=1, max_size=9)}, optional={"apiVersion": ANY_JSON, "metadata": ANY_JSON, "spec": ANY_JSON}
)


@settings(max_examples=300)
@given(
    raw=st.fixed_dictionaries(
        {},
        optional={
            "status": st.none() | st.dictionaries(st.text(max_size=9), ANY_JSON, max_size=4),
            "children": st.none() | st.lists(A_CHILD, max_size=4),
            "resyncAfterSeconds": st.none() | st.integers(0, 10**9) | st.floats(0, 1e9),
            "finalized": st.none() | st.booleans(),
        },
    )
)
def test_whatever_is_well_formed_is_read_as_it_stands(raw: dict[str, Any]):
    answer = sync_answer(dumps(raw), is_strict=True, keys=composite.KEYS)

    assert answer == replace(
        EMPTY_ANSWER,
        status=raw.get("status"),
        children=tuple(raw.get("children") or ()),
        resync_after_seconds=max(raw["resyncAfterSeconds"], LEAST_RESYNC_SECONDS) if raw.get("resyncAfterSeconds") else None,
        finalized=bool(raw.get("finalized")),
    )


@settings(max_examples=300)
@given(raw=st.dictionaries(st.sampled_from([*composite.KEYS.answer_fields]) | st.text(max_size=9), ANY_JSON, max_size=5) | ANY_JSON)
def test_any_json_is_an_answer_or_refused(raw: JsonValue):
    with suppress(InvalidAnswer):
        sync_answer(dumps(raw), is_strict=False, keys=composite.KEYS)


def test_of_very_many_unknown_keys_only_some_are_repeated_and_their_beginnings():
    answer = sync_answer(dumps({"children": []} | {f"{number}" * 1000: 1 for number in range(1000)}), is_strict=False, keys=composite.KEYS)

    assert len(answer.unknown_keys) == QUOTED_KEYS
    assert {len(key) for key in answer.unknown_keys} == {QUOTED_LENGTH}


@given(body=st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_any_bytes_are_an_answer_or_refused(body: bytes):
    with suppress(InvalidAnswer):
        sync_answer(body, is_strict=False, keys=composite.KEYS)


def decorator_answer(body: bytes) -> Answer:
    """A decorator's answer, read in strict mode."""
    return sync_answer(body, is_strict=True, keys=decorator.KEYS)


def test_decorators_answer_has_changes_and_attachments():
    answer = decorator_answer(b'{"labels": {"a": "1", "b": null}, "annotations": null, "attachments": [{"kind": "ConfigMap"}]}')

    assert answer.labels == {"a": "1", "b": None}
    assert answer.annotations == {}
    assert answer.children == ({"kind": "ConfigMap"},)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"labels": []}', "labels"),
        (b'{"annotations": {"a": 1}}', "annotations.a"),
        (b'{"attachments": [null]}', "attachments[0]"),
        (b'{"children": []}', "children"),
    ],
)
def test_decorators_answer_names_the_field_at_fault(body: bytes, field: str):
    with pytest.raises(InvalidAnswer) as caught:
        decorator_answer(body)

    assert caught.value.field == field
