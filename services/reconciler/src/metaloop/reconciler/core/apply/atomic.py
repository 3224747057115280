"""Whether a list or object that is kept as a whole is as it was desired: API servers add defaults even there."""

from collections.abc import Mapping
from typing import Final

from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.reconciler.core.apply.equality import alike
from metaloop.reconciler.core.apply.schema import NO_SCHEMA, Schema

_DEFAULTS: Final[Mapping[str, tuple[JsonValue, ...]]] = {
    # What API servers put into atomic lists and objects of their own kinds, where nobody says it, and their OpenAPI doesn't tell.
    "apiGroup": ("rbac.authorization.k8s.io", ""),
    "apiVersion": ("v1",),
    "divisor": ("0",),
    "expirationSeconds": (3600,),
    "kind": ("PersistentVolumeClaim",),
    "protocol": ("TCP",),
    "scope": ("*",),
    "status": ({"phase": "Pending"}, "True"),
    "volumeMode": ("Filesystem",),
}


def is_same_atomic(wanted: JsonValue, there: JsonValue, schema: Schema = NO_SCHEMA) -> bool:
    """Whether `there` is what an API server keeps of `wanted`, with nothing added but known defaults."""
    if isinstance(wanted, dict):
        return _is_same_object(wanted, there if is_object(there) else {}, schema) if wanted else not there
    if isinstance(wanted, list):
        present = [each for each in there if not is_appended(each, to=wanted)] if isinstance(there, list) else []
        return len(present) == len(wanted) and all(is_same_atomic(*pair, schema.items) for pair in zip(wanted, present, strict=True))
    return alike(there, wanted, schema) or (there is None and not wanted)


def is_appended(element: JsonValue, *, to: list[JsonValue]) -> bool:
    """Whether an admission plugin of every cluster added this to a list: the tolerations of node conditions that a Pod gets unless it has its own."""
    key = element.get("key") if is_object(element) else None
    return isinstance(key, str) and key.startswith("node.kubernetes.io/") and all(not is_object(d) or d.get("key") != key for d in to)


def _is_same_object(wanted: JsonObject, there: JsonObject, schema: Schema) -> bool:
    if not all(_is_same_field(key, each, there.get(key), schema.of(key)) for key, each in wanted.items()):
        return False
    return all(key in wanted or _is_default(key, each, schema.of(key)) for key, each in there.items())


def _is_same_field(key: str, wanted: JsonValue, there: JsonValue, schema: Schema) -> bool:
    # An empty desired value (Go's encoder writes a claim's `status: {}`) is filled as an absent one is.
    is_filled = not wanted and (schema.fills_empty or _is_default(key, there, schema))
    return is_filled or is_same_atomic(wanted, there, schema)


def _is_default(key: str, value: JsonValue, schema: Schema) -> bool:
    return value is None or value == schema.default or value in _DEFAULTS.get(key, ())
