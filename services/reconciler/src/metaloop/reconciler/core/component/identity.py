"""How the objects of a component are named, and how they are told from those of others."""

from base64 import b32encode
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Final, Literal, NamedTuple, TypeAlias

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import group_of

_CACHED_LABELS: Final = 4096
"""A pass needs the label of its component for each object."""

Ownership: TypeAlias = Literal["ours", "nobody's", "another's"]
"""Whose an object is, by its label."""


class ObjectKey(NamedTuple):
    """What identifies an object in the inventory. The version is no part of it."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def key_of(obj: JsonObject) -> ObjectKey:
    """The key of an object."""
    group = group_of(unstructured.api_version(obj))
    return ObjectKey(group, unstructured.kind(obj), unstructured.namespace(obj), unstructured.name(obj))


def owner_id(cluster_uid: str, component: JsonObject) -> str:
    """What identifies a component among those of all clusters: its cluster, its namespace and its name.

    A component that is made again under the same name is the same one. So it finds what its predecessor orphaned.
    """
    return f"{cluster_uid}/{unstructured.namespace(component)}/{unstructured.name(component)}"


@lru_cache(_CACHED_LABELS)
def _label_of(owner: str) -> str:
    return b32encode(sha256(owner.encode()).digest()).decode().rstrip("=").lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """The marks that a component puts on its objects: a label, by which it selects them, and two annotations."""

    prefix: str
    """What the names of labels and annotations begin with, before a slash."""
    owner_id: str

    @property
    def owner_key(self) -> str:
        """The name of the label and of the annotation with the owner."""
        return f"{self.prefix}/owner-id"

    @property
    def digest_key(self) -> str:
        """The name of the annotation with the digest of what was applied."""
        return f"{self.prefix}/digest"

    @property
    def owner_label(self) -> str:
        """The value of the label. An owner's id would be too long for one."""
        return _label_of(self.owner_id)

    def on(self, obj: JsonObject, *, digest: str) -> JsonObject:
        """`obj` with the marks."""
        metadata = unstructured.metadata(obj)
        labels = {**unstructured.child_object(metadata, "labels"), self.owner_key: self.owner_label}
        annotations = {**unstructured.child_object(metadata, "annotations"), self.owner_key: self.owner_id, self.digest_key: digest}
        return {**obj, "metadata": {**metadata, "labels": labels, "annotations": annotations}}

    def off(self, obj: JsonObject) -> JsonObject:
        """`obj` without the marks, and without a map that held nothing else."""
        metadata = {**unstructured.metadata(obj)}
        for name, keys in (("labels", {self.owner_key}), ("annotations", {self.owner_key, self.digest_key})):
            before = unstructured.child_object(metadata, name)
            if before.keys() & keys:
                metadata[name] = {key: value for key, value in before.items() if key not in keys}
                if not metadata[name]:
                    del metadata[name]
        return {**obj, "metadata": metadata}

    def ownership(self, live: JsonObject) -> Ownership:
        """Whose a live object is."""
        label = unstructured.labels(live).get(self.owner_key)
        if not label:
            return "nobody's"
        return "ours" if label == self.owner_label else "another's"

    def digest_of(self, live: JsonObject) -> str:
        """The digest of what was last applied to a live object. Empty if nothing was."""
        return unstructured.annotations(live).get(self.digest_key, "")
