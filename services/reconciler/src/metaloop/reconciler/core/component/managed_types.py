"""Managed types: those that an object of the component makes known, or that its controller lists.

Instances of them are applied last and deleted first, and instances of others block the deletion of the type.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import group_of
from metaloop.reconciler.core.component.order import API_SERVICE, CRD, GroupKind

ANY: Final = "*"


class ManagedType(NamedTuple):
    """A set of types. Each part may be `*`; the group may also be a suffix, like `*.example.com`."""

    group: str
    version: str
    kind: str

    def covers(self, group: str, version: str, kind: str) -> bool:
        """Whether a type is among them."""
        return _group_matches(self.group, group) and self.version in {ANY, version} and self.kind in {ANY, kind}

    def __str__(self) -> str:
        return f"{self.group}/{self.version}/{self.kind}"


def managed_type(text: str) -> ManagedType | None:
    """The type in the text form of one; None for any other text."""
    parts = text.split("/")
    return ManagedType(parts[0], parts[1], parts[2]) if len(parts) == 3 else None


def managed_types_of(obj: JsonObject) -> tuple[ManagedType, ...]:
    """The types that an object makes known. Empty for all but CustomResourceDefinitions and APIServices."""
    if unstructured.kind(obj) not in {CRD.kind, API_SERVICE.kind}:
        return ()
    spec = unstructured.child_object(obj, "spec")
    match GroupKind(group_of(unstructured.api_version(obj)), unstructured.kind(obj)):
        case group_kind if group_kind == CRD:
            names = unstructured.child_object(spec, "names")
            return (ManagedType(unstructured.text(spec, "group"), ANY, unstructured.text(names, "kind")),)
        case group_kind if group_kind == API_SERVICE:
            return (ManagedType(unstructured.text(spec, "group"), unstructured.text(spec, "version"), ANY),)
        case _:
            return ()


def is_managed(types: Iterable[ManagedType], *, group: str, version: str, kind: str) -> bool:
    """Whether a type is among the managed ones."""
    return any(each.covers(group, version, kind) for each in types)


def _group_matches(pattern: str, group: str) -> bool:
    if pattern in {ANY, group}:
        return True
    suffix = pattern.removeprefix("*.")
    return suffix != pattern and ANY not in suffix and group.endswith(f".{suffix}")
