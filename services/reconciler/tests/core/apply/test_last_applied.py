"""The last applied annotation, and the fields that only the API server writes."""

import json

import pytest
from builders import LABELS, PARENT_UID, a_parent, config_map, stored

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JsonObject, JsonValue, dumps, is_object, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import owner_references
from metaloop.reconciler.core.apply.configuration import SYSTEM_METADATA
from metaloop.reconciler.core.apply.last_applied import applied_to, new_child
from metaloop.reconciler.core.apply.schema import NO_SCHEMA, Schema


def created(desired: JsonObject) -> JsonObject:
    """`desired` as the API server stores it after we created it."""
    return stored(new_child(desired, parent=a_parent()), metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})


def remembered(obj: JsonObject) -> str:
    """The annotation's text."""
    return unstructured.annotations(obj)[LAST_APPLIED_ANNOTATION]


def test_what_was_created_is_current():
    desired = config_map(namespace="default")

    applied = applied_to(created(desired), desired, schema=NO_SCHEMA)

    assert (applied.is_changed, applied.is_recorded) == (False, True)


def test_annotation_is_compact_sorted_and_without_what_we_add():
    child = new_child({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}}, parent=a_parent())

    assert remembered(child) == '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}'


def test_annotation_is_escaped_as_gos_encoder_does():
    child = new_child(config_map(data={"page": "<b>a & b</b>\u2028\u2029 ü"}), parent=a_parent())

    assert r"\u003cb\u003ea \u0026 b\u003c/b\u003e\u2028\u2029 ü" in remembered(child)
    assert json.loads(remembered(child))["data"]["page"] == "<b>a & b</b>\u2028\u2029 ü"


def test_new_child_is_controlled_by_the_parent_once():
    child = new_child(config_map(), parent=a_parent())
    again = new_child(child, parent=a_parent())

    assert [reference["uid"] for reference in owner_references(again)] == [PARENT_UID]


def with_metadata(**metadata: JsonValue) -> JsonObject:
    """A ConfigMap that a hook desires, with such metadata."""
    desired = config_map(namespace="default")
    return {**desired, "metadata": {**unstructured.metadata(desired), **metadata}}


def reference(uid: str, **fields: bool) -> JsonObject:
    """A reference to an owner that a hook names."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, **fields}


def test_hook_that_names_the_parent_as_a_mere_owner_gets_a_controlled_child():
    child = new_child(with_metadata(ownerReferences=[reference(PARENT_UID, controller=False)]), parent=a_parent())

    assert [entry["controller"] for entry in owner_references(child)] == [True]


@pytest.mark.parametrize(
    "before", [[reference("other")], [reference(PARENT_UID)], [reference(PARENT_UID, controller=False), reference("other")]]
)
@pytest.mark.parametrize("after", [None, [], [reference(PARENT_UID, controller=False)]])
def test_child_stays_its_parents_whatever_the_hook_says_of_owners(before: list[JsonValue], after: list[JsonValue] | None):
    observed = created(with_metadata(ownerReferences=before))
    desired = with_metadata(**({} if after is None else {"ownerReferences": after}))

    applied = applied_to(observed, desired, schema=NO_SCHEMA)

    assert [(entry["uid"], entry["controller"]) for entry in owner_references(applied.obj)] == [(PARENT_UID, True)]
    assert applied.is_changed == any(is_object(entry) and entry["uid"] == "other" for entry in before)


def test_finalizers_of_others_survive_when_the_hook_stops_speaking_of_finalizers():
    observed = created(with_metadata(finalizers=["example.com/ours"]))
    unstructured.metadata(observed)["finalizers"] = ["example.com/ours", "example.com/theirs"]
    schema = Schema()
    schema.fields = {"metadata": (metadata := Schema())}
    metadata.fields = {"finalizers": (finalizers := Schema())}
    finalizers.list_type = "set"

    applied = applied_to(observed, config_map(namespace="default"), schema=schema)

    assert unstructured.finalizers(applied.obj) == ["example.com/theirs"]


@pytest.mark.parametrize("field", sorted(SYSTEM_METADATA))
def test_system_metadata_stays_as_observed_whatever_is_desired(field: str):
    desired = config_map(namespace="default")
    observed = created(desired)
    metadata = unstructured.metadata(observed)
    changed = {**desired, "metadata": {**unstructured.metadata(desired), field: "changed"}}

    merged = unstructured.metadata(applied_to(observed, changed, schema=NO_SCHEMA).obj)

    assert merged.get(field) == metadata.get(field)


def test_system_fields_that_were_applied_last_are_not_removed():
    observed = created(config_map(namespace="default"))
    last = {**config_map(namespace="default"), "status": {"old": 1}}
    last["metadata"] = {**unstructured.metadata(last), "uid": "x", "creationTimestamp": "y"}
    annotations: JsonObject = {LAST_APPLIED_ANNOTATION: json.dumps(last)}
    observed = {**observed, "status": {"now": 1}, "metadata": {**unstructured.metadata(observed), "annotations": annotations}}

    applied = applied_to(observed, config_map(namespace="default"), schema=NO_SCHEMA)

    assert not applied.is_changed


def test_status_belongs_to_the_api_server():
    desired = config_map(namespace="default")
    observed: JsonObject = {**created(desired), "status": {"replicas": 1}}

    applied = applied_to(observed, {**desired, "status": {"replicas": 5}}, schema=NO_SCHEMA)

    assert applied.obj["status"] == {"replicas": 1}
    assert not applied.is_changed


def test_hook_that_answers_with_what_it_was_shown_causes_no_write():
    observed: JsonObject = {**created(config_map(namespace="default")), "status": {"replicas": 1}}
    echo = loads(dumps(observed))

    applied = applied_to(observed, echo, schema=NO_SCHEMA)
    written = {**applied.obj, "metadata": {**unstructured.metadata(applied.obj), "resourceVersion": "21"}}
    again = applied_to(written, loads(dumps(written)), schema=NO_SCHEMA)

    assert not applied.is_changed
    assert (again.is_changed, again.is_recorded) == (False, True)


def test_explicit_nulls_of_typed_hooks_cause_no_write():
    desired = config_map(namespace="default")
    desired["metadata"] = {**unstructured.metadata(desired), "creationTimestamp": None}
    desired["status"] = {}

    applied = applied_to(created(desired), desired, schema=NO_SCHEMA)

    assert (applied.is_changed, applied.is_recorded) == (False, True)
    assert '"creationTimestamp":null' in remembered(applied.obj)


def test_annotation_that_means_the_same_is_left_as_it_is():
    """In a cluster that ran Metacontroller, Go has encoded 1.0 as 1."""
    desired: JsonObject = {**config_map(namespace="default"), "spec": {"replicas": 1.0}}
    observed = created(desired)
    theirs = remembered(observed).replace("1.0", "1").replace(":", ": ")
    observed["metadata"] = {**unstructured.metadata(observed), "annotations": {LAST_APPLIED_ANNOTATION: theirs}}

    applied = applied_to(observed, desired, schema=NO_SCHEMA)

    assert (applied.is_changed, applied.is_recorded) == (False, True)
    assert applied.obj is observed


@pytest.mark.parametrize("text", ["", "no json", "[]", "null"])
def test_unreadable_annotation_is_written_anew(text: str):
    desired = config_map(namespace="default")
    observed = created(desired)
    expected = remembered(observed)
    observed["metadata"] = {**unstructured.metadata(observed), "annotations": {LAST_APPLIED_ANNOTATION: text}}

    applied = applied_to(observed, desired, schema=NO_SCHEMA)

    assert (applied.is_changed, applied.is_recorded) == (False, False)
    assert remembered(applied.obj) == expected


def test_adopted_child_that_is_as_desired_lacks_only_the_annotation():
    desired = config_map(namespace="default")

    applied = applied_to(stored(desired), desired, schema=NO_SCHEMA)

    assert (applied.is_changed, applied.is_recorded) == (False, False)


def test_annotations_of_others_survive_when_the_hook_stops_speaking_of_annotations():
    desired = config_map(namespace="default")
    first = {**desired, "metadata": {**unstructured.metadata(desired), "annotations": {"ours": "1"}}}
    observed = created(first)
    kept = {**unstructured.annotations(observed), "theirs": "2"}
    observed["metadata"] = {**unstructured.metadata(observed), "annotations": {**kept}}

    applied = applied_to(observed, desired, schema=NO_SCHEMA)

    annotations = unstructured.annotations(applied.obj)
    assert (annotations.get("ours"), annotations.get("theirs")) == (None, "2")


def test_our_annotation_in_an_answer_is_not_remembered_within_itself():
    desired = config_map(namespace="default")
    noted = {**desired, "metadata": {**unstructured.metadata(desired), "annotations": {LAST_APPLIED_ANNOTATION: "{}", "own": "x"}}}

    child = new_child(noted, parent=a_parent())

    assert LAST_APPLIED_ANNOTATION not in remembered(child)
    assert unstructured.annotations(child)["own"] == "x"
    assert unstructured.labels(child) == LABELS
