"""Migrates a child from update to server-side apply: the fields that we wrote become fields that we apply.

So may the fields that certain others wrote, such as `kubectl edit`.

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


def is_to_be_migrated(live: JsonObject, *, manager: str, others: Sequence[str] = ()) -> bool:
    """Whether `live` has fields that become those that `manager` applies. See `migration_of`."""
    entries = unstructured.child_objects(unstructured.metadata(live), "managedFields")
    return any(_is_ours(each, manager, others) and not _is_applied(each, manager) for each in entries)


def migration_of(live: JsonObject, *, manager: str, others: Sequence[str] = ()) -> list[JsonValue]:
    """The JSON patch that makes `live` a child that `manager` applies. It conflicts with other versions of `live`.

    The managers whose names begin as one of the `others` lose their fields to `manager`.
    """
    metadata = unstructured.metadata(live)
    entries = unstructured.child_objects(metadata, "managedFields")
    version = unstructured.resource_version(live)
    patch: list[JsonValue] = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/metadata/managedFields", "value": [*_migrated(entries, live, manager=manager, others=others)]},
    ]
    if LAST_APPLIED_ANNOTATION in unstructured.annotations(live):
        patch.append({"op": "remove", "path": f"/metadata/annotations/{LAST_APPLIED_ANNOTATION.replace('/', '~1')}"})
    return patch


def _migrated(entries: Sequence[JsonObject], live: JsonObject, *, manager: str, others: Sequence[str]) -> list[JsonObject]:
    """`entries` with all of ours as one, with the operation Apply."""
    ours = [entry for entry in entries if _is_ours(entry, manager, others)]
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


def _is_ours(entry: JsonObject, manager: str, others: Sequence[str]) -> bool:
    """Whether the fields of an entry are ours, or become ours."""
    if unstructured.text(entry, "subresource"):
        return False
    name = unstructured.text(entry, "manager")
    updated = entry.get("operation") == "Update" and (name == manager or name in _UPDATING_MANAGERS)
    return updated or _is_applied(entry, manager) or name.startswith((*others,))


def _is_applied(entry: JsonObject, manager: str) -> bool:
    """Whether an entry has the fields that `manager` applied."""
    return unstructured.text(entry, "manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")
