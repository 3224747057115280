"""Extracts some fields of a parent as a patch, and applies such a patch to a later state of the parent."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from metaloop.common.json import JsonObject, JsonValue, is_object, type_name
from metaloop.common.objects import unstructured

Path: TypeAlias = tuple[str, ...]
"""The keys that lead to a field."""


def paths(written: Iterable[str]) -> tuple[Path, ...]:
    """The paths that a controller writes with dots."""
    return tuple(tuple(path.split(".")) for path in written)


def patch_in(parent: JsonObject, fields: Iterable[Path]) -> JsonObject:
    """The patch that sets those of the `fields` that `parent` has."""
    return with_present({}, parent, fields)


def with_present(parent: JsonObject, patch: JsonObject, fields: Iterable[Path]) -> JsonObject:
    """`parent` with those of the `fields` that `patch` has. The others stay."""
    for path in fields:
        found = _found(patch, path)
        if found is not None:
            parent = _with(parent, path, found.value)
    return parent


def with_patch(parent: JsonObject, patch: JsonObject, fields: Iterable[Path]) -> JsonObject:
    """`parent` with the `fields` as `patch` has them. Those that it doesn't have are removed."""
    for path in fields:
        found = _found(patch, path)
        parent = _without(parent, path) if found is None else _with(parent, path, found.value)
    return parent


def shared(some: Iterable[Path], others: Iterable[Path]) -> Iterator[Path]:
    """The fields that both cover. If one path leads into another, this is the inner one."""
    others = [*others]
    for path in some:
        for other in others:
            if path[: len(other)] == other:
                yield path
            elif other[: len(path)] == path:
                yield other


def obstacle_on(obj: JsonObject, path: Path) -> str:
    """The value without fields that a path leads through, as in `spec.names is a list`. Empty if there is none.

    A path may lead through a value that is missing or null.
    """
    value: JsonValue = obj
    for depth, key in enumerate(path):
        if value is None:
            return ""
        if not is_object(value):
            return f"{'.'.join(path[:depth])} is {type_name(value)}"
        value = value.get(key)
    return ""


@dataclass(frozen=True, slots=True)
class _Found:
    value: JsonValue


def _found(obj: JsonObject, path: Path) -> _Found | None:
    value: JsonValue = obj
    for key in path:
        if not is_object(value) or key not in value:
            return None
        value = value[key]
    return _Found(value)


def _with(obj: JsonObject, path: Path, value: JsonValue) -> JsonObject:
    key, *inner = path
    return {**obj, key: _with(unstructured.child_object(obj, key), tuple(inner), value) if inner else value}


def _without(obj: JsonObject, path: Path) -> JsonObject:
    key, *inner = path
    if key not in obj:
        return obj
    if not inner:
        return {other: value for other, value in obj.items() if other != key}
    below = obj[key]
    return {**obj, key: _without(below, tuple(inner))} if is_object(below) else obj
