"""Reads the fields of a spec. Errors name the path of the invalid field."""

from collections.abc import Iterable

from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects.resource import ResourceId


def object_at(parent: JsonObject, key: str, field: str) -> JsonObject | None:
    """The object at `key`, None if it is absent or null. Raises InvalidSpec for anything else."""
    value = parent.get(key)
    if value is None or is_object(value):
        return value
    raise InvalidSpec(f"{field}.{key}", "must be an object")


def objects_at(parent: JsonObject, key: str, field: str) -> list[JsonObject]:
    """The list of objects at `key`, empty if it is absent or null. Raises InvalidSpec for anything else."""
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidSpec(f"{field}.{key}", "must be a list")
    return [_object(item, f"{field}.{key}[{index}]") for index, item in enumerate(value)]


def _object(value: JsonValue, field: str) -> JsonObject:
    if is_object(value):
        return value
    raise InvalidSpec(field, "must be an object")


def require_known(parent: JsonObject, field: str, *, known: Iterable[str]) -> None:
    """Raise InvalidSpec for the first key of `parent` that is not `known`."""
    unknown = sorted(parent.keys() - set(known))
    if unknown:
        raise InvalidSpec(f"{field}.{unknown[0]}", f"is unknown here: there are {', '.join(sorted(known))}")


def required_text(parent: JsonObject, key: str, field: str) -> str:
    """The non-empty string at `key`. Raises InvalidSpec for anything else."""
    value = parent.get(key)
    if isinstance(value, str) and value:
        return value
    raise InvalidSpec(f"{field}.{key}", "must be a non-empty string")


def one_of(parent: JsonObject, key: str, field: str, *, choices: tuple[str, ...], default: str) -> str:
    """The string at `key`, one of `choices`; `default` if it is absent or empty. Raises InvalidSpec otherwise."""
    value = parent.get(key)
    if value is None or value == "":
        return default
    if isinstance(value, str) and value in choices:
        return value
    raise InvalidSpec(f"{field}.{key}", f"must be one of {', '.join(choices)}, not {value!r}")


def flag(parent: JsonObject, key: str, field: str) -> bool:
    """The boolean at `key`, false if it is absent. Raises InvalidSpec for anything else."""
    value = parent.get(key)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise InvalidSpec(f"{field}.{key}", "must be true or false")


def texts_at(parent: JsonObject, key: str, field: str) -> tuple[str, ...]:
    """The list of strings at `key`, empty if it is absent or null. Raises InvalidSpec for anything else."""
    value = parent.get(key)
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(map(str, value))
    raise InvalidSpec(f"{field}.{key}", "must be a list of strings")


def positive_seconds(parent: JsonObject, key: str, field: str) -> float | None:
    """The seconds at `key`, raised to 1 if less; None if absent or not positive.

    Raises InvalidSpec for anything else.
    """
    value = parent.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidSpec(f"{field}.{key}", "must be a number of seconds")
    return max(1.0, float(value)) if value > 0 else None


def resource_id(parent: JsonObject, field: str) -> ResourceId:
    """The resource in `apiVersion` and `resource`. Raises InvalidSpec if either is missing."""
    return ResourceId(required_text(parent, "apiVersion", field), required_text(parent, "resource", field))
