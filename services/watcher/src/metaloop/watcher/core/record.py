"""The last seen state of one object: its bytes, and the few fields that are needed without parsing them.

Thousands of records are held, so each is small: no tree of dicts; namespaces, owners and equal label sets are shared.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from metaloop.common.json import JsonObject, JsonValue, dumps, is_object, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import ControllerRef, controller_ref

ObjectKey: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""

_NO_LABELS: Mapping[str, str] = MappingProxyType({})
_LONGEST_VERSION = 20
"""The digits of the largest 64-bit number, which versions are."""
_REMEMBERED = 4096
"""How many owners and label sets are remembered: siblings arrive one after another, in lists and in bursts."""


@dataclass(frozen=True, slots=True)
class Record:
    """One object as it was last seen."""

    key: ObjectKey
    uid: str
    resource_version: int
    """As a number: versions of one resource compare. 0 where it is none."""
    raw: bytes
    """The whole object as JSON, without `metadata.managedFields`."""
    labels: Mapping[str, str]
    owner: ControllerRef | None
    finalizers: tuple[str, ...]
    is_deleting: bool
    managed: bytes = b""
    """The entry of `metadata.managedFields` that our server-side applies made, as JSON; empty where there is none."""

    def is_same_version_as(self, other: "Record") -> bool:
        """Whether both are the same object at the same version. Where versions are not numbers, the content decides."""
        if self.resource_version != other.resource_version or self.uid != other.uid:
            return False
        return bool(self.resource_version) or self.raw == other.raw

    def parse(self) -> JsonObject:
        """The object as JSON of the caller's own."""
        return loads(self.raw)


def record_of(obj: JsonObject, *, field_manager: str = "") -> Record | None:
    """The record of an object; None for anything without a name or UID. Removes managedFields from `obj`.

    The record keeps the entry of `field_manager`.
    """
    metadata = unstructured.metadata(obj)
    name, uid = unstructured.text(metadata, "name"), unstructured.text(metadata, "uid")
    if not name or not uid:
        return None
    managed = metadata.pop("managedFields", None)
    labels = unstructured.strings(metadata.get("labels"))
    owner = controller_ref(obj) if "ownerReferences" in metadata else None
    return Record(
        key=(sys.intern(unstructured.text(metadata, "namespace")), name),
        uid=uid,
        resource_version=version_number(unstructured.text(metadata, "resourceVersion")),
        raw=_no_larger_than_needed(dumps(obj)),
        labels=_shared_labels(tuple(labels.items())) if labels else _NO_LABELS,
        owner=_shared_owner(owner) if owner else None,
        finalizers=tuple(unstructured.finalizers(obj)) if "finalizers" in metadata else (),
        is_deleting="deletionTimestamp" in metadata,
        managed=_applied_by(field_manager, managed) if managed else b"",
    )


def _applied_by(manager: str, entries: JsonValue) -> bytes:
    for entry in entries if isinstance(entries, list) else ():
        if is_object(entry) and _is_applied_by(manager, entry):
            return _no_larger_than_needed(dumps({key: entry.get(key) for key in ("apiVersion", "fieldsV1")}))
    return b""


def _is_applied_by(manager: str, entry: JsonObject) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")


def _no_larger_than_needed(raw: bytes) -> bytes:
    """A copy: the bytes that the JSON library returns keep their buffer, which is up to four times as large."""
    return bytes(memoryview(raw))


@lru_cache(_REMEMBERED)
def _shared_labels(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return MappingProxyType(dict(items))


@lru_cache(_REMEMBERED)
def _shared_owner(owner: ControllerRef) -> ControllerRef:
    """The first of equal owners."""
    return owner


def version_number(text: str) -> int:
    """A resourceVersion as a number; 0 for what is none."""
    return int(text) if text.isdecimal() and len(text) <= _LONGEST_VERSION else 0
