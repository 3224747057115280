"""Reads of any object never fail: what is missing, or of another type than it ought to be, reads as empty."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured

json_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["metadata", "name", "labels", "finalizers"]), inner, max_size=3)
    ),
    max_leaves=5,
)

READS: dict[str, tuple[Callable[[JsonObject], object], JsonObject, object, object]] = {
    # what is read: (how, an object that has it, its value, the value where there is none)
    "metadata": (unstructured.metadata, {"metadata": {"name": "a"}}, {"name": "a"}, {}),
    "apiVersion": (unstructured.api_version, {"apiVersion": "v1"}, "v1", ""),
    "kind": (unstructured.kind, {"kind": "Pod"}, "Pod", ""),
    "name": (unstructured.name, {"metadata": {"name": "a"}}, "a", ""),
    "namespace": (unstructured.namespace, {"metadata": {"namespace": "default"}}, "default", ""),
    "uid": (unstructured.uid, {"metadata": {"uid": "u"}}, "u", ""),
    "resourceVersion": (unstructured.resource_version, {"metadata": {"resourceVersion": "7"}}, "7", ""),
    "generation": (unstructured.generation, {"metadata": {"generation": 3}}, 3, 0),
    "deletionTimestamp": (unstructured.is_deleting, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, True, False),
    "labels": (unstructured.labels, {"metadata": {"labels": {"a": "1"}}}, {"a": "1"}, {}),
    "annotations": (unstructured.annotations, {"metadata": {"annotations": {"a": "1"}}}, {"a": "1"}, {}),
    "finalizers": (unstructured.finalizers, {"metadata": {"finalizers": ["a", "b"]}}, ["a", "b"], []),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_field_that_is_there_is_read(read: tuple[Callable[[JsonObject], object], JsonObject, object, object]):
    of, obj, value, _ = read

    assert of(obj) == value


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
@pytest.mark.parametrize("obj", [{}, {"metadata": None}, {"metadata": "nonsense"}, {"metadata": []}], ids=repr)
def test_field_that_is_missing_reads_as_empty(obj: JsonObject, read: tuple[Callable[[JsonObject], object], JsonObject, object, object]):
    of, _, _, empty = read

    assert of(obj) == empty


@given(st.dictionaries(st.sampled_from(["metadata", "kind", "apiVersion"]), json_values, max_size=3))
def test_no_object_is_so_strange_that_a_read_fails(obj: JsonObject):
    for of, _, _, empty in READS.values():
        assert isinstance(of(obj), type(empty))


@pytest.mark.parametrize(("value", "expected"), [(3, 3), (0, 0), (-1, -1), (True, 0), (3.0, 0), ("3", 0), (None, 0)])
def test_only_a_whole_number_is_an_integer(value: JsonValue, expected: int):
    assert unstructured.integer({"key": value}, "key") == expected


def test_entries_of_labels_that_are_no_strings_are_left_out():
    assert unstructured.labels({"metadata": {"labels": {"a": "1", "b": 2, "c": None}}}) == {"a": "1"}


def test_finalizers_that_are_no_strings_are_left_out():
    assert unstructured.finalizers({"metadata": {"finalizers": ["a", 1, None]}}) == ["a"]


def test_child_object_that_is_missing_is_stored_nowhere():
    obj: JsonObject = {}

    unstructured.child_object(obj, "metadata")["name"] = "a"

    assert obj == {}


@pytest.mark.parametrize(("namespace", "described"), [("default", "Pod default/a"), ("", "Pod a")])
def test_object_is_described_by_kind_and_place(namespace: str, described: str):
    assert unstructured.describe({"kind": "Pod", "metadata": {"name": "a", "namespace": namespace}}) == described


def test_child_objects_are_the_objects_of_a_list():
    assert unstructured.child_objects({"key": [{"a": 1}, None, "b", {}]}, "key") == [{"a": 1}, {}]
    assert unstructured.child_objects({"key": {"a": 1}}, "key") == []


def test_metadata_is_removed_from_a_copy():
    obj: JsonObject = {"kind": "Pod", "metadata": {"name": "a", "uid": "u"}}

    assert unstructured.without_metadata(obj, {"uid"}) == {"kind": "Pod", "metadata": {"name": "a"}}
    assert obj["metadata"] == {"name": "a", "uid": "u"}
