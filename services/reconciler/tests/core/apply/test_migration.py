"""The migration of a child from update to server-side apply."""

from collections.abc import Sequence
from typing import Any

import pytest

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JsonObject
from metaloop.reconciler.core.apply.migration import is_to_be_migrated, migration_of


def entry(manager: str, operation: str, fields: JsonObject, **more: str) -> JsonObject:
    """An entry of `managedFields`."""
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields, **more}


def managed_after(*entries: JsonObject, others: Sequence[str] = ()) -> list[Any]:
    """`managedFields` after the migration."""
    live: JsonObject = {"apiVersion": "v1", "metadata": {"resourceVersion": "7", "managedFields": [*entries]}}
    patch = migration_of(live, manager="metacontroller", others=others)
    return next(step["value"] for step in patch if isinstance(step, dict) and step["path"] == "/metadata/managedFields")  # type: ignore[return-value]


def test_what_we_wrote_becomes_what_we_apply():
    [applied] = managed_after(
        entry("metaloop", "Update", {"f:data": {"f:a": {}}}),
        entry("metacontroller", "Update", {"f:data": {"f:b": {}}}),
        entry("metacontroller", "Apply", {"f:data": {"f:c": {}}}),
    )

    assert (applied["manager"], applied["operation"]) == ("metacontroller", "Apply")
    assert applied["fieldsV1"] == {"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}}


def test_what_others_wrote_stays_theirs():
    theirs = entry("kubectl-edit", "Update", {"f:data": {"f:x": {}}})
    status = entry("metaloop", "Update", {"f:status": {"f:y": {}}}, subresource="status")

    assert managed_after(theirs, status) == [theirs, status]


def test_neither_the_status_nor_our_annotation_is_applied():
    annotation = {f"f:{LAST_APPLIED_ANNOTATION}": {}, "f:own": {}}
    [applied] = managed_after(entry("metaloop", "Update", {"f:metadata": {"f:annotations": {**annotation}}, "f:status": {"f:a": {}}}))

    assert applied["fieldsV1"] == {"f:metadata": {"f:annotations": {"f:own": {}}}}


def test_fields_of_another_version_are_given_up():
    assert managed_after(entry("metaloop", "Update", {"f:spec": {}}, apiVersion="v1beta1")) == []


def test_annotation_goes_and_only_that_version_is_patched():
    live: JsonObject = {"apiVersion": "v1", "metadata": {"resourceVersion": "7", "annotations": {LAST_APPLIED_ANNOTATION: "{}"}}}

    patch = migration_of(live, manager="metacontroller")

    assert {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"} in patch
    assert {"op": "remove", "path": "/metadata/annotations/metacontroller.k8s.io~1last-applied-configuration"} in patch


def test_what_named_others_wrote_becomes_ours_however_they_wrote_it():
    [theirs, applied] = managed_after(
        entry("kubectl-edit", "Update", {"f:data": {"f:a": {}}}),
        entry("kubectl", "Apply", {"f:data": {"f:b": {}}}),
        entry("kubectl-edit", "Update", {"f:status": {}}, subresource="status"),
        entry("metacontroller", "Apply", {"f:data": {"f:c": {}}}),
        others=["kubectl"],
    )

    assert theirs["subresource"] == "status"
    assert applied["fieldsV1"] == {"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}}


@pytest.mark.parametrize(
    ("manager", "operation", "others", "is_needed"),
    [
        ("metacontroller", "Apply", (), False),
        ("metacontroller", "Update", (), True),
        ("metaloop", "Update", (), True),
        ("kubectl-edit", "Update", (), False),
        ("kubectl-edit", "Update", ("kubectl",), True),
        ("kubectl", "Apply", ("kubectl",), True),
        ("helm", "Apply", ("kubectl",), False),
    ],
)
def test_object_is_migrated_only_if_it_has_fields_that_become_ours(
    manager: str, operation: str, others: tuple[str, ...], *, is_needed: bool
):
    live: JsonObject = {"metadata": {"managedFields": [entry(manager, operation, {"f:data": {}})]}}

    assert is_to_be_migrated(live, manager="metacontroller", others=others) is is_needed
