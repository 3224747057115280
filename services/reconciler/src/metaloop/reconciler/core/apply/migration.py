"""How a child that was replaced as a whole becomes one that is applied by the API server: the fields that we wrote become fields that we apply.

Without it we would own them twice, and one that is desired no longer would stay: its other owner, ourselves, never gives it up.
"""

from collections.abc import Sequence
from typing import Final

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.apply.field_set import FieldSet, union, without

_FORMER_MANAGERS: Final = frozenset({"metacontroller", "metaloop"})
"""Who replaced children: Metacontroller, and we."""


def migration_of(live: JsonObject, *, manager: str) -> list[JsonValue]:
    """The JSON patch that makes `live` a child which `manager` applies; a conflict, on any other version than that of `live`."""
    metadata = unstructured.metadata(live)
    entries = metadata.get("managedFields")
    version = unstructured.resource_version(live)
    patch: list[JsonValue] = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/metadata/managedFields", "value": [*_taken_over(_entries(entries), live, manager=manager)]},
    ]
    if LAST_APPLIED_ANNOTATION in unstructured.annotations(live):
        patch.append({"op": "remove", "path": f"/metadata/annotations/{LAST_APPLIED_ANNOTATION.replace('/', '~1')}"})
    return patch


def _entries(raw: JsonValue) -> list[JsonObject]:
    return [entry for entry in raw if is_object(entry)] if isinstance(raw, list) else []


def _taken_over(entries: Sequence[JsonObject], live: JsonObject, *, manager: str) -> list[JsonObject]:
    ours = [entry for entry in entries if _is_ours(entry, manager)]
    version = unstructured.api_version(live)
    owned: FieldSet = {}
    for entry in ours:
        # Fields of another version may have other names; what we own by them alone stays, as anybody's.
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
    return (name == manager and operation == "Apply") or (operation == "Update" and (name == manager or name in _FORMER_MANAGERS))
