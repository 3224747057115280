"""What counts as drift of an object from its manifest."""

import pytest
from components import manifest

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.drift import drifted_field


def spec(value: JsonValue) -> JsonObject:
    """An object with this spec."""
    return {**manifest(), "spec": value}


ALIKE: dict[str, tuple[JsonValue, JsonValue]] = {
    "equal": ({"a": [1, {"b": "c"}]}, {"a": [1, {"b": "c"}]}),
    "a field more": ({"a": 1}, {"a": 1, "b": 2}),
    "a field more in a list": ([{"name": "x"}], [{"name": "x", "protocol": "TCP"}]),
    "an empty map that is left out": ({"a": {}}, {}),
    "an empty list that is left out": ({"a": []}, {}),
    "an empty text that is left out": ({"a": ""}, {}),
    "a null that is left out": ({"a": None}, {}),
    "a zero that is left out": ({"a": 0}, {}),
    "a false that is left out": ({"a": False}, {}),
    "an empty map for a null": ({"a": None}, {"a": {}}),
    "a whole number as a float": ({"a": 1}, {"a": 1.0}),
}


@pytest.mark.parametrize(("wanted", "present"), ALIKE.values(), ids=ALIKE.keys())
def test_no_drift(wanted: JsonValue, present: JsonValue):
    assert drifted_field(spec(wanted), spec(present), is_merged=False) == ""


DRIFTED: dict[str, tuple[JsonValue, JsonValue, str]] = {
    "another value": ({"a": 1}, {"a": 2}, "spec.a"),
    "another type": ({"a": "1"}, {"a": 1}, "spec.a"),
    "a field less": ({"a": {"b": 1}}, {"a": {}}, "spec.a.b"),
    "a map less": ({"a": {"b": 1}}, {}, "spec.a"),
    "deep in lists": ({"a": [[{"b": 1}]]}, {"a": [[{"b": 2}]]}, "spec.a[0][0].b"),
    "an element less": ([1, 2], [1], "spec"),
    "an element more": ([1], [1, 2], "spec"),
    "another order": ([1, 2], [2, 1], "spec[0]"),
    "a truth for nothing": ({"a": True}, {}, "spec.a"),
    "a value for what should be empty": ({"a": ""}, {"a": "b"}, "spec.a"),
}


@pytest.mark.parametrize(("wanted", "present", "field"), DRIFTED.values(), ids=DRIFTED.keys())
def test_drift_names_the_first_field(wanted: JsonValue, present: JsonValue, field: str):
    assert drifted_field(spec(wanted), spec(present), is_merged=False) == field


@pytest.mark.parametrize(
    ("wanted", "present", "field"),
    [
        ([1, 2], [2, 3, 1], ""),
        ([{"name": "x", "v": 1}], [{"name": "y"}, {"name": "x", "v": 1, "w": 2}], ""),
        ([{"name": "x", "v": 1}], [{"name": "x", "v": 2}], "spec[0]"),
        ([1], [], "spec[0]"),
    ],
)
def test_lists_that_are_merged_may_have_more_elements(wanted: JsonValue, present: JsonValue, field: str):
    assert drifted_field(spec(wanted), spec(present), is_merged=True) == field


@pytest.mark.parametrize("part", ["labels", "annotations"])
def test_labels_and_annotations_of_the_manifest_count(part: str):
    wanted, present = manifest(), manifest()
    wanted["metadata"] = {**unstructured.metadata(wanted), part: {"a": "b"}}
    present["metadata"] = {**unstructured.metadata(present), part: {"a": "c", "other": "x"}}

    assert drifted_field(wanted, present, is_merged=False) == f"metadata.{part}.a"


def test_other_metadata_versions_and_the_status_do_not_count():
    wanted: JsonObject = {
        "apiVersion": "v1",
        "kind": "A",
        "metadata": {"name": "a", "generation": 1, "finalizers": ["x"]},
        "status": {"a": 1},
    }
    present: JsonObject = {"apiVersion": "v2", "kind": "A", "metadata": {"name": "a", "generation": 2}}

    assert drifted_field(wanted, present, is_merged=False) == ""


def test_content_beside_a_spec_counts():
    assert drifted_field({**manifest(), "data": {"k": "v"}}, {**manifest(), "data": {"k": "w"}}, is_merged=False) == "data.k"
