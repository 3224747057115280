"""The contents of the Secrets and ConfigMaps that a component refers to.

Rules
    1. An object or a key that is missing ends the pass. The component is tried again, at once if it is made.
    2. What is optional may be missing, and so may what counts only as long as the component is not deleted.
    3. The digest of the contents is a part of the component's digest: if they change, so does the component.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from typing import Final

from metaloop.common.api.references import Reference, ReferenceKind
from metaloop.common.json import JsonObject, dumps_sorted
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.related_query import InNamespace, RelatedQuery
from metaloop.reconciler.core.component.cluster import Address
from metaloop.reconciler.core.component.identity import ObjectKey
from metaloop.reconciler.errors import ReferenceMissing

_RESOURCES: Final[Mapping[ReferenceKind, ResourceInfo]] = {
    "Secret": ResourceInfo(api_version="v1", resource="secrets", kind="Secret", namespaced=True),
    "ConfigMap": ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True),
}
_DATA: Final = ("data", "binaryData")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceContents:
    """What a component refers to, as it is now."""

    reference: Reference
    data: JsonObject
    """The object's `data` and `binaryData`, or of these the key that is meant."""

    @property
    def digest(self) -> str:
        """The digest of the data."""
        return sha256(dumps_sorted(self.data)).hexdigest()

    def shown(self) -> JsonObject:
        """The contents as hooks are sent them."""
        reference = self.reference
        where: JsonObject = {"kind": reference.kind, "namespace": reference.namespace, "name": reference.name}
        return {"path": reference.path, **where, **({"key": reference.key} if reference.key else {}), **self.data}


def queries_of(references: Iterable[Reference]) -> list[RelatedQuery]:
    """The queries for the objects that a component refers to: one for each kind and namespace."""

    def place(reference: Reference) -> tuple[ReferenceKind, str]:
        return reference.kind, reference.namespace

    return [
        RelatedQuery(resource=_RESOURCES[kind].id, where=InNamespace(namespace), names=frozenset(each.name for each in group))
        for (kind, namespace), group in groupby(sorted(references, key=place), key=place)
    ]


def addresses_of(references: Iterable[Reference]) -> dict[ObjectKey, Address]:
    """Where the objects are that a component refers to, each once."""
    return {object_key(each): Address(_RESOURCES[each.kind], each.namespace, each.name) for each in references}


def object_key(reference: Reference) -> ObjectKey:
    """The key of the object."""
    return ObjectKey("", reference.kind, reference.namespace, reference.name)


def contents_of(
    references: Sequence[Reference], objects: Mapping[ObjectKey, JsonObject], *, is_deleting: bool
) -> tuple[ReferenceContents, ...]:
    """The contents of those `objects` that a component refers to. Raises ReferenceMissing for the first missing one.

    `is_deleting` says that the component is being deleted.
    """
    return tuple(_found(references, objects, is_deleting=is_deleting))


def _found(references: Sequence[Reference], objects: Mapping[ObjectKey, JsonObject], *, is_deleting: bool) -> Iterator[ReferenceContents]:
    for reference in references:
        obj = objects.get(object_key(reference))
        data = _data(obj, reference.key) if obj is not None else None
        if data is not None:
            yield ReferenceContents(reference=reference, data=data)
        elif not reference.is_optional and not (is_deleting and reference.not_found == "IgnoreOnDeletion"):
            problem = "does not exist" if obj is None else f"has no key {reference.key!r}"
            raise ReferenceMissing(f"{reference} {problem}: the component refers to it at {reference.path}")


def _data(obj: JsonObject, key: str) -> JsonObject | None:
    """The data of an object; with a key, only what is there. None if nothing is."""
    data = {name: unstructured.child_object(obj, name) for name in _DATA if unstructured.child_object(obj, name)}
    if not key:
        return {**data}
    chosen: JsonObject = {name: {key: values[key]} for name, values in data.items() if key in values}
    return chosen or None
