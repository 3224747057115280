"""Compares atomic lists and objects with what is desired. API servers set defaults even inside them."""

from collections.abc import Mapping
from typing import Final

from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.reconciler.core.apply.equality import alike
from metaloop.reconciler.core.apply.schema import Schema

_DEFAULTS: Final[Mapping[str, tuple[JsonValue, ...]]] = {
    # Defaults of API servers in atomic lists and objects of their own kinds, which their OpenAPI does not state.
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


def is_same_atomic(desired: JsonValue, observed: JsonValue, schema: Schema) -> bool:
    """Whether `observed` is what an API server stores for `desired`: nothing is added to it but known defaults."""
    if isinstance(desired, dict):
        return _is_same_object(desired, observed if is_object(observed) else {}, schema) if desired else not observed
    if isinstance(desired, list):
        own = [each for each in observed if not is_appended(each, to=desired)] if isinstance(observed, list) else []
        return len(own) == len(desired) and all(is_same_atomic(*pair, schema.items) for pair in zip(desired, own, strict=True))
    return alike(observed, desired, schema) or (observed is None and not desired)


def is_appended(element: JsonValue, *, to: list[JsonValue]) -> bool:
    """Whether an admission plugin of every cluster appended this element to a list.

    These are the tolerations of node conditions. A Pod gets each of them unless it has its own for the same key.
    """
    key = element.get("key") if is_object(element) else None
    return isinstance(key, str) and key.startswith("node.kubernetes.io/") and all(not is_object(d) or d.get("key") != key for d in to)


def _is_same_object(desired: JsonObject, observed: JsonObject, schema: Schema) -> bool:
    if not all(_is_same_field(key, each, observed.get(key), schema.of(key)) for key, each in desired.items()):
        return False
    return all(key in desired or _is_default(key, each, schema.of(key)) for key, each in observed.items())


def _is_same_field(key: str, desired: JsonValue, observed: JsonValue, schema: Schema) -> bool:
    # An empty desired value (Go encodes a claim's empty status as `status: {}`) is filled as an absent one is.
    is_filled = not desired and (schema.fills_empty or _is_default(key, observed, schema))
    return is_filled or is_same_atomic(desired, observed, schema)


def _is_default(key: str, value: JsonValue, schema: Schema) -> bool:
    return value is None or value == schema.default or value in _DEFAULTS.get(key, ())
