"""Reads the common fields of any object. A field that is missing or has the wrong type reads as empty."""

from collections.abc import Set as AbstractSet

from metaloop.common.json import JsonObject, JsonValue, is_object


def child_object(parent: JsonObject, key: str) -> JsonObject:
    """The object at `key`; else a new empty one, which is not part of `parent`."""
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def child_objects(parent: JsonObject, key: str) -> list[JsonObject]:
    """The objects in the list at `key`. Other elements are left out."""
    value = parent.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def metadata(obj: JsonObject) -> JsonObject:
    """`metadata`, empty if absent."""
    value = obj.get("metadata")
    return value if isinstance(value, dict) else {}


def text(parent: JsonObject, key: str) -> str:
    """The string at `key`, or an empty string."""
    value = parent.get(key)
    return value if isinstance(value, str) else ""


def integer(parent: JsonObject, key: str) -> int:
    """The integer at `key`, or 0."""
    value = parent.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def api_version(obj: JsonObject) -> str:
    """`apiVersion`."""
    return text(obj, "apiVersion")


def kind(obj: JsonObject) -> str:
    """`kind`."""
    return text(obj, "kind")


def name(obj: JsonObject) -> str:
    """`metadata.name`."""
    return _metadata_text(obj, "name")


def namespace(obj: JsonObject) -> str:
    """`metadata.namespace`, empty for cluster-scoped objects."""
    return _metadata_text(obj, "namespace")


def uid(obj: JsonObject) -> str:
    """`metadata.uid`."""
    return _metadata_text(obj, "uid")


def resource_version(obj: JsonObject) -> str:
    """`metadata.resourceVersion`."""
    return _metadata_text(obj, "resourceVersion")


def _metadata_text(obj: JsonObject, key: str) -> str:
    """As `text` of `metadata`. Names and versions are read many times in a sync, so this makes no further call."""
    found = obj.get("metadata")
    value = found.get(key) if isinstance(found, dict) else None
    return value if isinstance(value, str) else ""


def generation(obj: JsonObject) -> int:
    """`metadata.generation`, 0 for kinds that have none."""
    return integer(metadata(obj), "generation")


def is_deleting(obj: JsonObject) -> bool:
    """Whether `metadata.deletionTimestamp` is set."""
    return bool(metadata(obj).get("deletionTimestamp"))


def strings(value: JsonValue) -> dict[str, str]:
    """The entries with string values of a map such as labels or annotations; others are left out."""
    return {key: item for key, item in value.items() if isinstance(item, str)} if is_object(value) else {}


def labels(obj: JsonObject) -> dict[str, str]:
    """`metadata.labels`."""
    return strings(metadata(obj).get("labels"))


def annotations(obj: JsonObject) -> dict[str, str]:
    """`metadata.annotations`."""
    return strings(metadata(obj).get("annotations"))


def finalizers(obj: JsonObject) -> list[str]:
    """`metadata.finalizers`."""
    value = metadata(obj).get("finalizers")
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def describe(obj: JsonObject) -> str:
    """The object's name in messages: `Kind namespace/name`."""
    space = namespace(obj)
    return f"{kind(obj)} {space}/{name(obj)}" if space else f"{kind(obj)} {name(obj)}"


def without_metadata(obj: JsonObject, fields: AbstractSet[str]) -> JsonObject:
    """`obj` without these fields of its metadata."""
    return {**obj, "metadata": {key: value for key, value in metadata(obj).items() if key not in fields}}
