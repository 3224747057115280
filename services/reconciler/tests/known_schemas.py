"""A small OpenAPI document as API servers serve it, and providers of schemas."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.apply.openapi import schema_of
from metaloop.reconciler.core.apply.schema import Schema, guessed_schema
from metaloop.reconciler.schemas import Schemas, Source

GADGETS = ResourceInfo(api_version="apps/v1", resource="gadgets", kind="Gadget", namespaced=True)
WIDGETS = ResourceInfo(api_version="ex.io/v1", resource="widgets", kind="Widget", namespaced=True)
"""A kind that comes from a CustomResourceDefinition."""

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_TEXT: JsonObject = {"type": "string"}


def ref(name: str) -> JsonObject:
    """A property that refers to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def document() -> JsonObject:
    """The document with Gadgets and Widgets."""
    port: JsonObject = {
        "type": "object",
        "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": _TEXT},
    }
    spec: JsonObject = {
        "type": "object",
        "properties": {
            "ports": {
                "type": "array",
                "items": {"default": {}, "allOf": [ref("io.k8s.api.apps.v1.Port")]},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
            },
            "rules": {"type": "array", "items": ref("io.k8s.api.apps.v1.Rule"), "x-kubernetes-list-type": "atomic"},
            "names": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
            "anyhow": {"type": "array", "items": {"type": "object"}},
            "limits": {"type": "object", "additionalProperties": ref(_QUANTITY)},
            "token": {"type": "string", "format": "byte"},
            "selector": {"default": {}, "allOf": [ref("io.k8s.api.apps.v1.Selector")]},
            "hostNetwork": {"type": "boolean"},
            "replicas": {"type": "integer"},
            "nodePort": {"type": "integer"},
            "targetPort": ref("io.k8s.apimachinery.pkg.util.intstr.IntOrString"),
            "inner": ref("io.k8s.api.apps.v1.GadgetSpec"),
        },
    }
    components: JsonObject = {
        "io.k8s.api.apps.v1.Gadget": {
            "type": "object",
            "properties": {
                "spec": ref("io.k8s.api.apps.v1.GadgetSpec"),
                "metadata": ref("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
            },
            "x-kubernetes-group-version-kind": [{"group": "apps", "kind": "Gadget", "version": "v1"}],
        },
        "io.k8s.api.apps.v1.GadgetSpec": spec,
        "io.k8s.api.apps.v1.Port": port,
        "io.k8s.api.apps.v1.Rule": {
            "type": "object",
            "properties": {"host": _TEXT, "limit": ref(_QUANTITY), "apiGroup": _TEXT, "scheme": _TEXT},
        },
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        "io.k8s.api.apps.v1.Selector": {
            "type": "object",
            "properties": {"matchLabels": {"type": "object", "additionalProperties": _TEXT}},
            "x-kubernetes-map-type": "atomic",
        },
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
            "type": "object",
            "properties": {"labels": {"type": "object", "additionalProperties": _TEXT}},
        },
        _QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
        "io.ex.v1.Widget": {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "limits": {"type": "object", "additionalProperties": _TEXT},
                        "list": {"type": "array", "items": {"type": "object"}},
                        "maybe": {"type": "string", "nullable": True},
                    },
                }
            },
            "x-kubernetes-group-version-kind": [{"group": "ex.io", "kind": "Widget", "version": "v1"}],
        },
    }
    return {"components": {"schemas": components}}


def known(info: ResourceInfo) -> Schema:
    """The schema of a kind in the document."""
    schema = schema_of(document(), info)
    assert schema is not None
    return schema


GADGET = known(GADGETS)
WIDGET = known(WIDGETS)


class GuessedSchemas:
    """Provides guessed schemas only."""

    def of(self, info: ResourceInfo) -> Schema:
        """The guessed schema of a kind."""
        return guessed_schema(info)

    async def wait_for(self, infos: Iterable[ResourceInfo]) -> None:
        """Returns at once: there is nothing to wait for."""


@asynccontextmanager
async def running(source: Source, clock: Callable[[], float]) -> AsyncIterator[Schemas]:
    """Schemas that are kept up to date while the block lasts."""
    schemas = Schemas(source, clock=clock)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(schemas.run())
        yield schemas
        task.cancel()
