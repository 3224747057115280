"""The rules by which the model changes one object: what a client may write, and what stays the server's."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.simulation.cluster.objects import (
    Refusal,
    Stamp,
    created,
    deletion_begun,
    has_generation,
    merge_patched,
    needs_version,
    updated,
)
from metaloop.simulation.resources import CONFIG_MAPS, ROUTES, THINGS

STAMP = Stamp(uid="uid-1", at="2026-01-01T00:00:00Z")
NODES = ResourceInfo(api_version="v1", resource="nodes", kind="Node", namespaced=False)
FORGED: JsonObject = {
    "uid": "forged",
    "creationTimestamp": "1999-01-01T00:00:00Z",
    "deletionTimestamp": "1999-01-01T00:00:00Z",
    "deletionGracePeriodSeconds": 30,
    "generation": 99,
    "namespace": "elsewhere",
    "resourceVersion": "1",
    "managedFields": [{"manager": "forged"}],
}

plain: st.SearchStrategy[JsonValue] = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
"""JSON without nulls, which a merge patch can state completely."""
documents = st.dictionaries(st.sampled_from("abc"), plain, max_size=3)


def stored(info: ResourceInfo = THINGS, **metadata: JsonValue) -> JsonObject:
    """An object as the store holds it."""
    made = created(info, {"metadata": {"name": "a"}, "spec": {"size": 1}}, namespace="default", stamp=STAMP)
    return {**made, "metadata": {**unstructured.metadata(made), "resourceVersion": "7", **metadata}}


def with_metadata(obj: JsonObject, **metadata: JsonValue) -> JsonObject:
    return {**obj, "metadata": {**unstructured.metadata(obj), **metadata}}


def test_a_create_stores_nothing_that_only_the_server_writes():
    made = created(THINGS, {"metadata": {"name": "a", "labels": {"l": "1"}, **FORGED}}, namespace="default", stamp=STAMP)

    assert made["metadata"] == {
        "name": "a",
        "labels": {"l": "1"},
        "uid": "uid-1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "namespace": "default",
        "generation": 1,
    }


def test_a_created_object_has_the_type_of_its_resource():
    made = created(THINGS, {"apiVersion": "v1", "kind": "Other", "metadata": {"name": "a"}}, namespace="default", stamp=STAMP)

    assert (made["apiVersion"], made["kind"]) == (THINGS.api_version, THINGS.kind)


def test_a_cluster_scoped_object_has_no_namespace():
    made = created(NODES, {"metadata": {"name": "a", "namespace": "default"}}, namespace="default", stamp=STAMP)

    assert "namespace" not in unstructured.metadata(made)


@pytest.mark.parametrize(("info", "is_kept"), [(THINGS, False), (ROUTES, True), (CONFIG_MAPS, True)])
def test_a_status_is_created_only_where_it_is_no_subresource(info: ResourceInfo, *, is_kept: bool):
    made = created(info, {"metadata": {"name": "a"}, "status": {"ready": True}}, namespace="default", stamp=STAMP)

    assert ("status" in made) is is_kept


@pytest.mark.parametrize(
    ("api_version", "is_counted"),
    [
        ("v1", False),
        ("apps/v1", False),
        ("networking.k8s.io/v1", False),
        ("example.com/v1", True),
        ("metacontroller.k8s.io/v1alpha1", True),
    ],
)
def test_changes_of_custom_resources_are_counted_and_versioned(api_version: str, *, is_counted: bool):
    info = replace(THINGS, api_version=api_version)

    assert (has_generation(info), needs_version(info)) == (is_counted, is_counted)


@given(documents)
def test_an_update_by_what_is_stored_changes_nothing(spec: JsonObject):
    before = {**stored(), "spec": spec}

    assert updated(THINGS, before, before, subresource="") == before


def test_an_update_leaves_what_only_the_server_writes():
    before = stored()
    sent = with_metadata(before, **{**FORGED, "uid": "uid-1", "resourceVersion": "7"})

    assert updated(THINGS, before, sent, subresource="") == before


@pytest.mark.parametrize("field", ["labels", "annotations", "finalizers", "ownerReferences"])
@pytest.mark.parametrize("empty", [{}, []], ids=repr)
def test_metadata_that_becomes_empty_is_no_field_any_more(field: str, empty: JsonValue):
    metadata: JsonObject = {**unstructured.metadata(stored()), field: ["x"]}
    before = {**stored(), "metadata": metadata}

    after = updated(THINGS, before, {**before, "metadata": {**metadata, field: empty}}, subresource="")

    assert field not in unstructured.metadata(after)


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        ({"spec": {"size": 2}}, 2),
        ({"extra": True}, 2),
        ({"status": {"ready": True}}, 1),
        ({"kind": "Other"}, 1),
    ],
    ids=repr,
)
def test_only_changed_content_is_another_generation(change: JsonObject, generation: int):
    before = stored()

    assert unstructured.generation(updated(THINGS, before, {**before, **change}, subresource="")) == generation


@given(documents)
def test_a_status_update_changes_nothing_but_the_status(status: JsonObject):
    before = stored()
    sent = {**with_metadata(before, labels={"l": "1"}, finalizers=["f"]), "spec": {"size": 9}, "status": status}

    assert updated(THINGS, before, sent, subresource="status") == {**before, "status": status}


def test_a_status_update_without_a_status_removes_it():
    before = {**stored(), "status": {"ready": True}}

    assert "status" not in updated(THINGS, before, stored(), subresource="status")


@pytest.mark.parametrize(
    ("metadata", "code", "reason"),
    [
        ({"uid": "other"}, 409, "Conflict"),
        ({"resourceVersion": "6"}, 409, "Conflict"),
        ({"resourceVersion": ""}, 422, "Invalid"),
        ({"name": "b"}, 400, "BadRequest"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("subresource", ["", "status"])
def test_an_update_of_something_else_is_refused(subresource: str, metadata: JsonObject, code: int, reason: str):
    before = stored()

    with pytest.raises(Refusal) as refusal:
        updated(THINGS, before, with_metadata(before, **metadata), subresource=subresource)

    assert (refusal.value.code, refusal.value.reason) == (code, reason)


def test_finalizers_are_removed_while_an_object_is_deleted():
    deleting = deletion_begun(THINGS, stored(finalizers=["f", "g"]), at=STAMP.at)

    after = updated(THINGS, deleting, with_metadata(deleting, finalizers=["g"]), subresource="")

    assert unstructured.finalizers(after) == ["g"]
    assert unstructured.is_deleting(after)


@pytest.mark.parametrize(("info", "generation"), [(THINGS, 2), (CONFIG_MAPS, 0)])
def test_a_deletion_begins_once_and_is_a_change_of_the_object(info: ResourceInfo, generation: int):
    begun = deletion_begun(info, stored(info, finalizers=["f"]), at="2026-01-02T00:00:00Z")

    assert unstructured.metadata(begun)["deletionTimestamp"] == "2026-01-02T00:00:00Z"
    assert unstructured.generation(begun) == generation
    assert deletion_begun(info, begun, at="2026-01-03T00:00:00Z") == begun


@given(documents, documents)
def test_a_merge_patch_of_values_can_be_repeated(target: JsonObject, patch: JsonObject):
    once = merge_patched(target, patch)

    assert merge_patched(once, patch) == once


@given(documents, documents)
def test_a_merge_patch_touches_no_field_that_it_does_not_name(target: JsonObject, patch: JsonObject):
    merged = merge_patched(target, patch)

    assert isinstance(merged, dict)
    assert {key: merged[key] for key in merged.keys() - patch.keys()} == {key: target[key] for key in target.keys() - patch.keys()}


@given(documents)
def test_a_merge_patch_of_nulls_empties_an_object(target: JsonObject):
    assert merge_patched(target, dict.fromkeys(target)) == {}


@given(plain, st.integers() | st.text() | st.lists(plain, max_size=2))
def test_a_merge_patch_that_is_no_object_replaces_everything(target: JsonValue, patch: JsonValue):
    assert merge_patched(target, patch) == patch


@given(documents, documents)
def test_a_merge_patch_leaves_its_target_as_it_was(target: JsonObject, patch: JsonObject):
    before = repr(target)

    merge_patched(target, patch)

    assert repr(target) == before


def test_a_refusal_is_shown_as_a_status():
    status = Refusal(409, "Conflict", "changed").status

    assert (status["kind"], status["status"], status["code"], status["reason"], status["message"]) == (
        "Status",
        "Failure",
        409,
        "Conflict",
        "changed",
    )
