"""Digests: by them, a pass knows what changed since it last applied an object."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from metaloop.common.api.policies import ReconcilePolicy
from metaloop.common.json import JsonObject, dumps_sorted
from metaloop.common.objects import unstructured

ONCE: Final = "__once__"
"""The digest of an object that is written once, and not again while it exists."""

_VOLATILE: Final = frozenset({"resourceVersion", "generation", "managedFields"})


def object_digest(obj: JsonObject, *, policy: ReconcilePolicy, component: str) -> str:
    """The digest of an object without our marks. Equal objects have equal digests, whatever the order of their keys.

    `component` is the digest of the component, on which some objects depend.
    """
    if policy == "Once":
        return ONCE
    digest = sha256(dumps_sorted(unstructured.without_metadata(obj, _VOLATILE))).hexdigest()
    return f"{digest}@{component}" if policy == "OnObjectOrComponentChange" else digest


def component_digest(component: JsonObject, *, references: Mapping[str, str]) -> str:
    """The digest of what a component asks for: its spec, its annotations, and the contents that it refers to.

    `references` has the digests of these contents by the paths of the fields that refer to them.
    """
    metadata = unstructured.metadata(component)
    asked = {
        "generation": unstructured.generation(component),
        "annotations": unstructured.child_object(metadata, "annotations"),
        "spec": component.get("spec"),
        **{f"refs:{path}": digest for path, digest in references.items()},
    }
    return sha256(dumps_sorted(asked)).hexdigest()
