"""Children of a custom kind: its schema describes its lists, and its values are compared literally."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from known_schemas import running
from onechild import OneChild

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.testing.clock import FakeClock
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.cluster import CRDS, Cluster
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import install
from metaloop.reconciler.schemas import Schemas

pytestmark = pytest.mark.e2e

STRATEGIES = ["dynamic-apply", "server-side-apply"]
WIDGETS = ResourceInfo(api_version="tests.example.com/v1", resource="widgets", kind="Widget", namespaced=True)
SPEC: JsonObject = {
    "endpoints": [{"port": 53}, {"port": 53, "protocol": "UDP"}],
    "tags": ["a", "b"],
    "limits": {"cpu": "1000m"},
    "every": "60s",
    "size": 3.0,
    "either": "50%",
    "maybe": None,
    "nothing": [],
    "off": False,
    "free": {"any": [{"thing": 1.5}, None]},
}


def _crd(spec: JsonObject) -> JsonObject:
    text: JsonObject = {"type": "string"}
    endpoint: JsonObject = {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "weight": {"type": "integer"}}
    properties: JsonObject = {
        "endpoints": {
            "type": "array",
            "items": {"type": "object", "properties": endpoint, "required": ["port"]},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
        },
        "tags": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "limits": {"type": "object", "additionalProperties": text},
        "every": text,
        "size": {"type": "integer"},
        "either": {"x-kubernetes-int-or-string": True},
        "maybe": {"type": "string", "nullable": True},
        "nothing": {"type": "array", "items": text},
        "off": {"type": "boolean"},
        "defaulted": {"type": "string", "default": "by the schema"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        **spec,
    }
    schema: JsonObject = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.tests.example.com"},
        "spec": {
            "group": "tests.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@pytest_asyncio.fixture
async def cluster(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """A cluster that serves Widgets."""
    async with Cluster.connect(plane) as cluster:
        await install(cluster, _crd({}))
        yield cluster


@pytest.fixture
def clock() -> FakeClock:
    """The clock of the schemas."""
    return FakeClock()


@pytest_asyncio.fixture
async def schemas(kube: KubeClient, clock: FakeClock) -> AsyncIterator[Schemas]:
    """The schemas of the API server's kinds."""
    async with running(kube, clock) as schemas:
        yield schemas


@pytest.fixture(params=STRATEGIES)
def child(request: pytest.FixtureRequest, kube: KubeClient, cluster: Cluster, schemas: Schemas, parent: JsonObject) -> OneChild:
    """A Widget."""
    del cluster
    return OneChild(kube=kube, schemas=schemas, parent=parent, info=WIDGETS, name="a", strategy=request.param)


def desired(child: OneChild, spec: JsonObject) -> JsonObject:
    """A desired Widget."""
    metadata: JsonObject = {"name": "a", "namespace": child.namespace}
    return {"apiVersion": WIDGETS.api_version, "kind": WIDGETS.kind, "metadata": metadata, "spec": spec}


async def spec_of(child: OneChild) -> JsonObject:
    """The live spec."""
    return unstructured.child_object(await child.existing(), "spec")


async def test_custom_child_is_at_rest(child: OneChild, clock: FakeClock):
    await _schema_is_known(child, clock)

    created, again = await child.sync(desired(child, SPEC)), await child.sync(desired(child, SPEC))

    assert (len(created.done), len(again.done), created.failures) == (1, 0, ())
    assert (await spec_of(child))["every"] == "60s"


async def test_values_of_a_custom_kind_are_taken_literally(child: OneChild, clock: FakeClock):
    """Only their own controller knows what they mean."""
    await _schema_is_known(child, clock)
    await child.sync(desired(child, SPEC))

    await child.sync(desired(child, {**SPEC, "limits": {"cpu": "1"}, "every": "1m"}))

    spec = await spec_of(child)
    assert (spec["limits"], spec["every"]) == ({"cpu": "1"}, "1m")


async def test_list_map_and_set_keep_what_others_put_there(child: OneChild, clock: FakeClock):
    await _schema_is_known(child, clock)
    await child.sync(desired(child, SPEC))
    endpoints: list[JsonValue] = [
        {"port": 53, "protocol": "TCP", "weight": 7},
        {"port": 53, "protocol": "UDP"},
        {"port": 80, "protocol": "TCP"},
    ]
    await child.patch({"spec": {"tags": ["theirs", "a", "b"], "endpoints": endpoints}})

    await child.sync(desired(child, {**SPEC, "tags": ["a"], "endpoints": [{"port": 53}]}))

    spec = await spec_of(child)
    assert spec["tags"] == ["theirs", "a"]
    assert spec["endpoints"] == [{"port": 53, "protocol": "TCP", "weight": 7}, {"port": 80, "protocol": "TCP"}]


async def test_changed_schema_is_followed(cluster: Cluster, schemas: Schemas, clock: FakeClock):
    """A list without a declared type becomes atomic."""
    atomic: JsonObject = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"}
    await cluster.patch(CRDS, "", "widgets.tests.example.com", {"spec": _crd({"nothing": atomic})["spec"]})

    async def is_followed() -> None:
        _look_again(schemas, clock)
        expect(schemas.of(WIDGETS).of("spec").of("nothing").list_type == "atomic", "not yet known as atomic")

    await eventually(is_followed)


async def _schema_is_known(child: OneChild, clock: FakeClock) -> None:
    """Waits until the API server publishes the schema, which it does shortly after it serves the kind."""

    async def is_known() -> None:
        _look_again(child.schemas, clock)
        expect(child.schemas.of(WIDGETS).of("spec").of("endpoints").list_type == "map", "not yet known")

    await eventually(is_known)


def _look_again(schemas: Schemas, clock: FakeClock) -> None:
    clock.advance(31.0)
    schemas.recheck()
