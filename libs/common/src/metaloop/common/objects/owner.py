"""Owner references: the controller of an object, and the reference that makes a parent its controller."""

from dataclasses import dataclass

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import group_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRef:
    """The owner reference with `controller: true`. The API server allows at most one on an object."""

    api_version: str
    kind: str
    name: str
    uid: str

    @property
    def group(self) -> str:
        """The owner's API group. The version is not part of its identity."""
        return group_of(self.api_version)


def owner_references(obj: JsonObject) -> list[JsonObject]:
    """The well-formed entries of `metadata.ownerReferences`."""
    return unstructured.child_objects(unstructured.metadata(obj), "ownerReferences")


def controller_ref(obj: JsonObject) -> ControllerRef | None:
    """The object's controller, or None for an orphan."""
    for entry in owner_references(obj):
        if entry.get("controller") is True:
            return ControllerRef(
                api_version=unstructured.text(entry, "apiVersion"),
                kind=unstructured.text(entry, "kind"),
                name=unstructured.text(entry, "name"),
                uid=unstructured.text(entry, "uid"),
            )
    return None


def reference_to(parent: JsonObject) -> JsonObject:
    """The entry of `ownerReferences` that makes `parent` the controller of an object.

    A foreground deletion of `parent` waits until the object is gone.
    """
    return {
        "apiVersion": unstructured.api_version(parent),
        "kind": unstructured.kind(parent),
        "name": unstructured.name(parent),
        "uid": unstructured.uid(parent),
        "controller": True,
        "blockOwnerDeletion": True,
    }
