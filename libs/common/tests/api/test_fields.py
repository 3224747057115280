"""Reads of a spec's fields: the value, its default, or the path of what is wrong with it."""

from collections.abc import Callable

import pytest

from metaloop.common.api import fields
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonValue
from metaloop.common.objects.resource import ResourceId


def one_of(parent: dict[str, JsonValue], key: str, field: str) -> str:
    return fields.one_of(parent, key, field, choices=("loose", "strict"), default="loose")


Read = Callable[[dict[str, JsonValue], str, str], object]

GOOD: dict[str, tuple[Read, JsonValue, object]] = {
    # what it shows: (how it is read, the value, what comes of it)
    "an object": (fields.object_at, {"a": 1}, {"a": 1}),
    "a null object": (fields.object_at, None, None),
    "a list of objects": (fields.objects_at, [{"a": 1}, {}], [{"a": 1}, {}]),
    "a null list of objects": (fields.objects_at, None, []),
    "a text": (fields.required_text, "a", "a"),
    "one of the choices": (one_of, "strict", "strict"),
    "no choice": (one_of, None, "loose"),
    "an empty choice": (one_of, "", "loose"),
    "true": (fields.flag, True, True),
    "false": (fields.flag, False, False),
    "no flag": (fields.flag, None, False),
    "texts": (fields.texts_at, ["a", "b"], ("a", "b")),
    "no texts": (fields.texts_at, None, ()),
    "seconds": (fields.positive_seconds, 5, 5.0),
    "less than a second": (fields.positive_seconds, 0.5, 1.0),
    "no seconds": (fields.positive_seconds, None, None),
    "zero seconds": (fields.positive_seconds, 0, None),
    "negative seconds": (fields.positive_seconds, -3, None),
}


@pytest.mark.parametrize("case", GOOD.values(), ids=GOOD.keys())
def test_value_is_read(case: tuple[Read, JsonValue, object]):
    read, value, expected = case

    assert read({"key": value}, "key", "spec") == expected


@pytest.mark.parametrize("read", [fields.object_at, fields.objects_at, one_of, fields.flag, fields.texts_at, fields.positive_seconds])
def test_absent_field_reads_as_a_null_one(read: Read):
    assert read({}, "key", "spec") == read({"key": None}, "key", "spec")


BAD: dict[str, tuple[Read, JsonValue, str, str]] = {
    # what it shows: (how it is read, the value, the path, what is said)
    "no object": (fields.object_at, [], "spec.key", "must be an object"),
    "no list": (fields.objects_at, {}, "spec.key", "must be a list"),
    "an item that is no object": (fields.objects_at, [{}, 1], "spec.key[1]", "must be an object"),
    "no text": (fields.required_text, None, "spec.key", "must be a non-empty string"),
    "an empty text": (fields.required_text, "", "spec.key", "must be a non-empty string"),
    "a number for a text": (fields.required_text, 1, "spec.key", "must be a non-empty string"),
    "none of the choices": (one_of, "sloppy", "spec.key", "must be one of loose, strict, not 'sloppy'"),
    "a choice of another type": (one_of, 1, "spec.key", "must be one of loose, strict, not 1"),
    "no flag": (fields.flag, "yes", "spec.key", "must be true or false"),
    "a number for a flag": (fields.flag, 1, "spec.key", "must be true or false"),
    "one text for several": (fields.texts_at, "a", "spec.key", "must be a list of strings"),
    "a number among texts": (fields.texts_at, ["a", 1], "spec.key", "must be a list of strings"),
    "a flag for seconds": (fields.positive_seconds, True, "spec.key", "must be a number of seconds"),
    "a text for seconds": (fields.positive_seconds, "5s", "spec.key", "must be a number of seconds"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_what_is_wrong_is_named_by_its_path(case: tuple[Read, JsonValue, str, str]):
    read, value, path, problem = case

    with pytest.raises(InvalidSpec) as raised:
        read({"key": value}, "key", "spec")

    assert (raised.value.field, str(raised.value)) == (path, f"{path}: {problem}")


def test_resource_is_named_by_apiversion_and_plural():
    assert fields.resource_id({"apiVersion": "apps/v1", "resource": "deployments"}, "spec") == ResourceId("apps/v1", "deployments")


@pytest.mark.parametrize("missing", ["apiVersion", "resource"])
def test_resource_that_is_half_named_is_refused(missing: str):
    named: dict[str, JsonValue] = {"apiVersion": "apps/v1", "resource": "deployments"}
    del named[missing]

    with pytest.raises(InvalidSpec, match=rf"spec\.{missing}: must be a non-empty string"):
        fields.resource_id(named, "spec")
