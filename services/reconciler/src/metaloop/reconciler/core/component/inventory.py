"""The inventory: one item for each object that the component has deployed, or is about to.

It is kept in the component's status. So whatever a pass does, the next one knows about each object.

    ScheduledForApplication ─▶ Creating | Updating ─▶ Ready
    Ready ─▶ ScheduledForCompletion ─▶ Completing ─▶ Completed         purged after a wave
    any   ─▶ ScheduledForDeletion ─▶ Deleting ─▶ no item               no longer desired, or the component is deleted

An item whose object ceases to be ready stays `Ready`. Only its `status` says so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, TypeAlias, cast, get_args

from metaloop.common.api.policies import AdoptionPolicy, DeletePolicy, ReconcilePolicy, UpdatePolicy
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.identity import ObjectKey
from metaloop.reconciler.core.component.managed_types import ManagedType, managed_type
from metaloop.reconciler.core.component.order import delete_priority
from metaloop.reconciler.core.component.target import Target

Phase: TypeAlias = Literal[
    "ScheduledForApplication",
    "Creating",
    "Updating",
    "Ready",
    "ScheduledForCompletion",
    "Completing",
    "Completed",
    "ScheduledForDeletion",
    "Deleting",
]
PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
SETTLED: Final[frozenset[Phase]] = frozenset({"Ready", "Completed"})
"""The phases in which an item is as it should be, or was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """What is known of one object. Its policies are those under which it was last desired."""

    key: ObjectKey
    version: str
    adoption: AdoptionPolicy = "IfUnowned"
    reconcile: ReconcilePolicy = "OnObjectChange"
    update: UpdatePolicy = "Replace"
    delete: DeletePolicy = "Delete"
    apply_order: int = 0
    delete_order: int = 0
    managed_types: tuple[ManagedType, ...] = ()
    digest: str = ""
    """The digest of what is desired. Empty if the object is no longer desired."""
    phase: Phase = "ScheduledForApplication"
    status: str = ""
    """How the object is: Current, InProgress, Failed or Terminating. Empty once it was purged."""
    last_applied_at: str = ""

    @property
    def api_version(self) -> str:
        """The apiVersion of the object."""
        return f"{self.key.group}/{self.version}" if self.key.group else self.version

    @property
    def is_desired(self) -> bool:
        """Whether the manifests have the object."""
        return bool(self.digest)

    def applied_seconds_ago(self, now: datetime) -> float | None:
        """How long ago the object was last written; None if it never was, or nobody knows."""
        try:
            return (now - datetime.fromisoformat(self.last_applied_at)).total_seconds()
        except ValueError:
            return None

    def to_json(self) -> JsonObject:
        """The item as the status of the component has it. Empty fields are left out."""
        fields: JsonObject = {
            "group": self.key.group,
            "version": self.version,
            "kind": self.key.kind,
            "namespace": self.key.namespace,
            "name": self.key.name,
            "adoptionPolicy": self.adoption,
            "reconcilePolicy": self.reconcile,
            "updatePolicy": self.update,
            "deletePolicy": self.delete,
            "applyOrder": self.apply_order,
            "deleteOrder": self.delete_order,
            "managedTypes": [str(each) for each in self.managed_types],
            "digest": self.digest,
            "phase": self.phase,
            "status": self.status,
            "lastAppliedAt": self.last_applied_at,
        }
        return {name: value for name, value in fields.items() if value not in ("", [])}


Inventory: TypeAlias = Mapping[ObjectKey, Item]
"""The items by the keys of their objects, in the order in which the objects are deleted."""


def inventory_in(status: JsonObject) -> dict[ObjectKey, Item]:
    """The inventory in the status of a component. What is no item is left out."""
    items = [_item(raw) for raw in unstructured.child_objects(status, "inventory")]
    return {item.key: item for item in items if item is not None}


def inventory_json(inventory: Inventory) -> list[JsonObject]:
    """The inventory as the status of a component has it."""
    return [item.to_json() for item in inventory.values()]


def _item(raw: JsonObject) -> Item | None:
    text = unstructured.text
    phase = text(raw, "phase")
    if not text(raw, "kind") or not text(raw, "name") or phase not in PHASES:
        return None
    types = raw.get("managedTypes")
    managed = [managed_type(each) for each in types if isinstance(each, str)] if isinstance(types, list) else []
    return Item(
        key=ObjectKey(text(raw, "group"), text(raw, "kind"), text(raw, "namespace"), text(raw, "name")),
        version=text(raw, "version"),
        adoption=cast("AdoptionPolicy", text(raw, "adoptionPolicy")),
        reconcile=cast("ReconcilePolicy", text(raw, "reconcilePolicy")),
        update=cast("UpdatePolicy", text(raw, "updatePolicy")),
        delete=cast("DeletePolicy", text(raw, "deletePolicy")),
        apply_order=unstructured.integer(raw, "applyOrder"),
        delete_order=unstructured.integer(raw, "deleteOrder"),
        managed_types=tuple([each for each in managed if each is not None]),
        digest=text(raw, "digest"),
        phase=phase,
        status=text(raw, "status"),
        last_applied_at=text(raw, "lastAppliedAt"),
    )


# -- transitions -------------------------------------------------------------------------------------------------------


def scheduled(inventory: Inventory, targets: Iterable[Target]) -> dict[ObjectKey, Item]:
    """The inventory once it is known what is desired: new items, changed ones, and those that have to go."""
    desired = {target.key: target for target in targets}
    items = {key: _wanted(item, desired[key]) if key in desired else _unwanted(item) for key, item in inventory.items()}
    for key, target in desired.items():
        if key not in items:
            items[key] = _wanted(Item(key=key, version=target.version), target)
    return in_deletion_order(items)


def _wanted(item: Item, target: Target) -> Item:
    settings = target.settings
    if item.digest == target.digest and _is_as_before(item, target):
        return item
    refreshed = replace(
        item,
        version=target.version,
        adoption=settings.adoption,
        reconcile=settings.reconcile,
        update=settings.update,
        delete=settings.delete,
        apply_order=settings.apply_order,
        delete_order=settings.delete_order,
        managed_types=target.managed_types,
    )
    if item.digest == target.digest:
        return refreshed
    return replace(refreshed, digest=target.digest, phase="ScheduledForApplication", status="InProgress")


def _is_as_before(item: Item, target: Target) -> bool:
    """Whether an item has what its target says beside its digest."""
    settings = target.settings
    return (
        item.version == target.version
        and item.adoption == settings.adoption
        and item.reconcile == settings.reconcile
        and item.update == settings.update
        and item.delete == settings.delete
        and item.apply_order == settings.apply_order
        and item.delete_order == settings.delete_order
        and item.managed_types == target.managed_types
    )


def _unwanted(item: Item) -> Item:
    """An item whose object is no longer desired. The policies under which it was last desired stay in force."""
    return replace(item, digest="", phase="ScheduledForDeletion", status="Terminating") if item.is_desired else item


def in_deletion_order(items: Mapping[ObjectKey, Item]) -> dict[ObjectKey, Item]:
    """The items in the order in which their objects are deleted. Items of equal order stay as they are."""
    ordered = sorted(items.values(), key=lambda item: (item.delete_order, delete_priority(item.key.group, item.key.kind)))
    return {item.key: item for item in ordered}


def managed_types_in(inventory: Inventory) -> tuple[ManagedType, ...]:
    """The types that the objects of the inventory make known."""
    return tuple(dict.fromkeys(each for item in inventory.values() for each in item.managed_types))
