"""Migrates a child from update to server-side apply: the fields that we wrote become fields that we apply.

Without the migration we would own them twice, once for each operation. A field that is no longer desired would then
stay for ever: nothing takes it from its other owner, which is us.
"""

from collections.abc import Sequence
from typing import Final

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.apply.field_set import FieldSet, union, without

_UPDATING_MANAGERS: Final = frozenset({"metacontroller", "metaloop"})
"""The field managers that Metacontroller and Metaloop update children as."""


def migration_of(live: JsonObject, *, manager: str) -> list[JsonValue]:
    """The JSON patch that makes `live` a child that `manager` applies. It conflicts with other versions of `live`."""
    metadata = unstructured.metadata(live)
    entries = unstructured.child_objects(metadata, "managedFields")
    version = unstructured.resource_version(live)
    patch: list[JsonValue] = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/metadata/managedFields", "value": [*_migrated(entries, live, manager=manager)]},
    ]
    if LAST_APPLIED_ANNOTATION in unstructured.annotations(live):
        patch.append({"op": "remove", "path": f"/metadata/annotations/{LAST_APPLIED_ANNOTATION.replace('/', '~1')}"})
    return patch


def _migrated(entries: Sequence[JsonObject], live: JsonObject, *, manager: str) -> list[JsonObject]:
    """`entries` with all of ours as one, with the operation Apply."""
    ours = [entry for entry in entries if _is_ours(entry, manager)]
    version = unstructured.api_version(live)
    owned: FieldSet = {}
    for entry in ours:
        # Fields of another version may have other names. Those that we own in that version alone lose their owner.
        if entry.get("apiVersion") == version:
            owned = union(owned, unstructured.child_object(entry, "fieldsV1"))
    for path in (("status",), ("metadata", "annotations", LAST_APPLIED_ANNOTATION)):
        owned = without(owned, *path)
    applied: JsonObject = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
        "time": max((unstructured.text(entry, "time") for entry in ours), default=""),
    }
    return [*[entry for entry in entries if entry not in ours], *([applied] if owned else [])]


def _is_ours(entry: JsonObject, manager: str) -> bool:
    if unstructured.text(entry, "subresource"):
        return False
    name, operation = entry.get("manager"), entry.get("operation")
    return (name == manager and operation == "Apply") or (operation == "Update" and (name == manager or name in _UPDATING_MANAGERS))
