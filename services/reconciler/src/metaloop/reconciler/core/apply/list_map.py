"""Finds out which lists are maps, and which fields of their elements are the key.

Kubernetes merges some lists by key (`x-kubernetes-list-map-keys`) and replaces the others. Where the schema does not
say which, the key is guessed as Metacontroller guesses it, with one exception: fields that give two elements of one
list the same key are no key. A Service's port 53 on UDP and its port 53 on TCP are two ports.

Rules
    1. A list is a map only if all elements in all versions are objects, and the key tells all elements of each version
       apart.
    2. The key is what the schema says. If the schema says nothing, it is the first of `CANDIDATES` whose first field is
       in every element.
    3. A key field that an element leaves out has the API's default: a port without a protocol is on TCP.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.reconciler.core.apply.schema import Schema

Fields: TypeAlias = tuple[str, ...]
Key: TypeAlias = tuple[str, ...]

CANDIDATES: Final[tuple[Fields, ...]] = (
    ("containerPort",),
    ("containerPort", "protocol"),
    ("port",),
    ("port", "protocol"),
    ("mountPath",),
    ("name",),
    ("uid",),
    ("ip",),
    ("path",),
)
KEY_DEFAULTS: Final[Mapping[str, str]] = {"protocol": "TCP"}
"""The defaults of key fields, for lists without a schema."""


def key_fields(*versions: Sequence[JsonValue]) -> Fields | None:
    """The fields that tell the elements apart in each of a list's `versions`. None if the list is not a map."""
    elements = [element for version in versions for element in version]
    if not elements or not all(map(is_object, elements)):
        return None
    for fields in CANDIDATES:
        if all(_has(element, fields[0]) for element in elements) and all(_are_distinct(version, fields) for version in versions):
            return fields
    return None


def declared_fields(schema: Schema, *versions: Sequence[JsonValue]) -> Fields | None:
    """The key fields that `schema` declares. None if they do not tell the elements apart in each of the `versions`."""
    defaults = schema.key_defaults
    is_map = all(_are_distinct(version, schema.keys, defaults) and all(map(is_object, version)) for version in versions)
    return schema.keys if is_map else None


def by_key(version: Sequence[JsonValue], fields: Fields, defaults: Mapping[str, str] = KEY_DEFAULTS) -> dict[Key, JsonObject]:
    """The elements of a list map by their keys, in their order."""
    return {_key(element, fields, defaults): element for element in version if is_object(element)}


def _has(element: JsonValue, field: str) -> bool:
    value = element.get(field) if is_object(element) else None
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _are_distinct(version: Sequence[JsonValue], fields: Fields, defaults: Mapping[str, str] = KEY_DEFAULTS) -> bool:
    return len(version) < 2 or len(by_key(version, fields, defaults)) == len(version)


def _key(element: JsonObject, fields: Fields, defaults: Mapping[str, str]) -> Key:
    return tuple([str(element.get(field) or defaults.get(field)) for field in fields])
