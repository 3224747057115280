"""Compiles the `Schema` of a kind from the OpenAPI v3 document of its group and version."""

from collections.abc import Mapping
from typing import Final

from metaloop.common.json import JsonObject, JsonValue, is_array, is_object
from metaloop.common.objects.resource import ResourceInfo, version_of
from metaloop.common.objects.unstructured import child_object, text
from metaloop.reconciler.core.apply.schema import DROPPED_WHEN_ZERO, FILLED_WHEN_ZERO, ListType, Schema

_REF: Final = "#/components/schemas/"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_GO_TYPES: Final = ("io.k8s.api.", "io.k8s.apimachinery.", "io.k8s.apiextensions-apiserver.", "io.k8s.kube-aggregator.")
"""The prefixes of components that are Go types of the API server. Others come from a CustomResourceDefinition."""
_LIST_TYPES: Final[Mapping[str, ListType]] = {"map": "map", "set": "set", "atomic": "atomic"}


def schema_of(document: JsonObject, info: ResourceInfo) -> Schema | None:
    """The schema of a kind in `document`; None if the document does not contain the kind."""
    components = child_object(child_object(document, "components"), "schemas")
    gvk = {"group": info.group, "version": version_of(info.api_version), "kind": info.kind}
    for name, component in components.items():
        if is_object(component) and _is_of(component, gvk):
            return _Compiler(components).component(name)
    return None


def _is_of(component: JsonObject, gvk: Mapping[str, str]) -> bool:
    kinds = component.get("x-kubernetes-group-version-kind")
    return is_array(kinds) and any(kind == gvk for kind in kinds)


class _Compiler:
    """Compiles the components of one document, each of them once."""

    def __init__(self, components: JsonObject) -> None:
        self._components = components
        self._made: dict[str, Schema] = {}

    def component(self, name: str) -> Schema:
        made = self._made.get(name)
        if made is None:
            # Stored before it is filled in: components may refer to themselves.
            made = self._made[name] = Schema()
            made.is_typed = name.startswith(_GO_TYPES)
            if name == _QUANTITY:
                made.scalar = "quantity"
            else:
                self._fill(made, child_object(self._components, name))
        return made

    def _value(self, raw: JsonValue, *, inside: Schema) -> Schema:
        """The schema of a property, an element or a map's value `inside` another schema."""
        if not is_object(raw):
            return Schema()
        name = _referred(raw)
        if name is None:
            schema = Schema()
            schema.is_typed = inside.is_typed
            self._fill(schema, raw)
            return schema
        schema = self.component(name)
        return _atomic(schema) if raw.get("x-kubernetes-map-type") == "atomic" and not schema.is_atomic else schema

    def _property(self, field: str, raw: JsonValue, *, inside: Schema) -> Schema:
        schema = self._value(raw, inside=inside)
        if not inside.is_typed or not is_object(raw):
            return schema
        if field in FILLED_WHEN_ZERO:
            schema = _copy(schema)
            schema.fills_empty = True
        elif _referred(raw) is None:
            schema.drops_empty = _is_dropped_when_empty(field, raw)
        return schema

    def _fill(self, schema: Schema, raw: JsonObject) -> None:
        schema.default = raw.get("default")
        schema.is_nullable = raw.get("nullable") is True
        schema.is_atomic = raw.get("x-kubernetes-map-type") == "atomic"
        if raw.get("format") == "byte":
            schema.scalar = "bytes"
        properties = child_object(raw, "properties")
        if properties:
            schema.fields = {field: self._property(field, each, inside=schema) for field, each in properties.items()}
        values = raw.get("additionalProperties")
        schema.additional = self._value(values, inside=schema) if is_object(values) else Schema()
        if raw.get("type") == "array":
            self._fill_list(schema, raw)

    def _fill_list(self, schema: Schema, raw: JsonObject) -> None:
        schema.items = self._value(raw.get("items"), inside=schema)
        schema.list_type = _LIST_TYPES.get(text(raw, "x-kubernetes-list-type"), "unknown")
        keys = raw.get("x-kubernetes-list-map-keys")
        schema.keys = tuple([key for key in keys if isinstance(key, str)]) if is_array(keys) else ()
        defaults = {key: schema.items.of(key).default for key in schema.keys}
        schema.key_defaults = {key: str(default) for key, default in defaults.items() if default is not None}
        if schema.list_type == "map" and not schema.keys:
            schema.list_type = "unknown"


def _is_dropped_when_empty(field: str, raw: JsonObject) -> bool:
    return raw.get("type") == "array" or "additionalProperties" in raw or field in DROPPED_WHEN_ZERO


def _referred(raw: JsonObject) -> str | None:
    several = raw.get("allOf")
    refers = several[0] if is_array(several) and len(several) == 1 else raw
    reference = text(refers, "$ref") if is_object(refers) else ""
    return reference.removeprefix(_REF) if reference.startswith(_REF) else None


def _atomic(schema: Schema) -> Schema:
    copy = _copy(schema)
    copy.is_atomic = True
    return copy


def _copy(schema: Schema) -> Schema:
    copy = Schema()
    for name in Schema.__slots__:
        setattr(copy, name, getattr(schema, name))
    return copy
