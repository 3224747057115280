import pytest
from scripted_server import ScriptedServer

from metaloop.common.json import JsonObject, JsonValue, dumps, loads
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.discovery import (
    Discovery,
    Served,
    aggregated,
    completed,
    group_versions,
    merged,
    one_by_one,
    resource_list,
    retained,
)
from metaloop.common.kube.errors import Unreadable
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.unstructured import uid
from metaloop.devkit.testbed.eventually import eventually

CRDS = ResourceInfo(
    api_version="apiextensions.k8s.io/v1", resource="customresourcedefinitions", kind="CustomResourceDefinition", namespaced=False
)
DEPLOYMENTS = ResourceInfo(api_version="apps/v1", resource="deployments", kind="Deployment", namespaced=True, has_status=True)
METRICS = ResourceInfo(api_version="metrics.example.com/v1", resource="loads", kind="Load", namespaced=True)
MISSING = frozenset({METRICS.api_version})
NOTHING: JsonObject = {"kind": "APIGroupDiscoveryList", "items": []}


def by_id(*infos: ResourceInfo) -> dict[ResourceId, ResourceInfo]:
    return {info.id: info for info in infos}


def test_resources_of_a_served_version_are_replaced():
    now = Served(versions={"apps/v1": (DEPLOYMENTS,)})

    assert retained({}, now) == by_id(DEPLOYMENTS)


def test_version_whose_discovery_failed_keeps_its_resources():
    now = Served(versions={"apps/v1": (DEPLOYMENTS,)}, unknown=frozenset({"metrics.example.com/v1"}))

    assert retained(by_id(METRICS), now) == by_id(DEPLOYMENTS, METRICS)


def test_resources_of_a_removed_version_are_forgotten():
    now = Served(versions={"apps/v1": (DEPLOYMENTS,)})

    assert retained(by_id(DEPLOYMENTS, METRICS), now) == by_id(DEPLOYMENTS)


def test_stale_version_counts_as_failed():
    answer: JsonObject = {
        "kind": "APIGroupDiscoveryList",
        "items": [{"metadata": {"name": "metrics.example.com"}, "versions": [{"version": "v1", "freshness": "Stale"}]}],
    }

    assert aggregated(answer).unknown == {"metrics.example.com/v1"}


def test_entry_that_exists_only_for_its_subresources_is_not_a_resource():
    answer: JsonObject = {
        "items": [{"metadata": {"name": "g"}, "versions": [{"version": "v1", "resources": [{"resource": "x", "subresources": []}]}]}],
    }

    assert aggregated(answer).versions == {"g/v1": ()}


def test_subresources_are_properties_of_their_resource():
    answer: JsonObject = {
        "resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": True},
            {"name": "deployments/status", "kind": "Deployment", "namespaced": True},
        ]
    }

    assert resource_list("apps/v1", answer) == (DEPLOYMENTS,)


def test_empty_and_failed_versions_are_not_known():
    look = Served(versions={"apps/v1": (DEPLOYMENTS,), "metrics.example.com/v1": (METRICS,), "empty.example.com/v1": ()}, unknown=MISSING)

    assert look.known == {"apps/v1"}


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(Served(versions={}), id="not found"),
        pytest.param(Served(versions={"metrics.example.com/v1": ()}), id="empty"),
        pytest.param(Served(versions={}, unknown=MISSING), id="failed"),
    ],
)
def test_announced_version_that_lists_nothing_counts_as_failed(asked: Served):
    listed = Served(versions={"apps/v1": (DEPLOYMENTS,), "metrics.example.com/v1": ()})

    assert retained(by_id(METRICS), completed(listed, asked, behind=MISSING)) == by_id(METRICS, DEPLOYMENTS)


async def test_announced_version_that_the_list_lacks_is_asked_itself(scripted: ScriptedServer):
    itself: JsonObject = {"kind": "APIResourceList", "resources": [{"name": "loads", "kind": "Load", "namespaced": True}]}
    scripted.script = [_ok(NOTHING), _ok(_listed("Stale")), _ok(itself)]

    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        discovery = Discovery(kube)
        await discovery.refresh(announced=MISSING)

    assert discovery.resources() == by_id(METRICS)
    assert _paths(scripted) == [b"/api", b"/apis", b"/apis/metrics.example.com/v1"]


async def test_listed_version_is_not_asked_itself(scripted: ScriptedServer):
    scripted.script = [_ok(NOTHING), _ok(_listed("Current"))]

    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        await Discovery(kube).refresh(announced=MISSING)

    assert _paths(scripted) == [b"/api", b"/apis"]


@pytest.mark.parametrize("nonsense", [b"<html>", b"[]", b"null", b"{}", b'{"kind":"Status","status":"Failure"}'])
async def test_answer_that_is_not_discovery_changes_nothing(scripted: ScriptedServer, nonsense: bytes):
    """A proxy in between may answer instead, with a success."""
    scripted.script = [_ok(NOTHING), _ok(_listed("Current")), _ok(NOTHING), _answer(nonsense)]

    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        discovery = Discovery(kube)
        await discovery.refresh()
        with pytest.raises(Unreadable):
            await discovery.refresh()

    assert discovery.resources() == by_id(METRICS)


async def test_version_with_a_malformed_answer_counts_as_failed(scripted: ScriptedServer):
    scripted.script = [_answer(b"<html>"), _answer(b"{}")]

    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        served = await one_by_one(kube, ["a.example.com/v1", "b.example.com/v1"])

    assert served == Served(versions={}, unknown=frozenset({"a.example.com/v1", "b.example.com/v1"}))


def _listed(freshness: str) -> JsonObject:
    load: JsonObject = {"resource": METRICS.resource, "responseKind": {"kind": METRICS.kind}, "scope": "Namespaced"}
    resources: list[JsonValue] = [load] if freshness == "Current" else []
    versions: list[JsonValue] = [{"version": "v1", "freshness": freshness, "resources": resources}]
    return {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": METRICS.group}, "versions": versions}]}


def _paths(scripted: ScriptedServer) -> list[bytes]:
    return [asked.split()[1] for asked in scripted.requests]


def _ok(answer: JsonObject) -> bytes:
    return _answer(dumps(answer))


def _answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.e2e
async def test_resources_are_found_by_plural_and_by_kind(kube: KubeClient):
    discovery = Discovery(kube)
    await discovery.refresh()

    assert discovery.by_resource("apps/v1", "deployments") == DEPLOYMENTS
    assert discovery.by_kind("apps/v1", "Deployment") == DEPLOYMENTS
    assert discovery.resources()[ResourceId("v1", "nodes")].namespaced is False
    assert discovery.by_kind("apps/v2", "Deployment") is None
    assert discovery.by_resource("v1", "pods/log") is None


@pytest.mark.e2e
async def test_older_server_without_aggregated_discovery_gives_the_same(kube: KubeClient):
    async def gives_the_same() -> None:
        discovery = Discovery(kube)
        await discovery.refresh()
        looks = [await one_by_one(kube, group_versions(loads(await kube.request("GET", root)))) for root in ("/api", "/apis")]
        assert retained({}, merged(looks)) == discovery.resources()

    await eventually(gives_the_same)  # other tests define and remove kinds


@pytest.mark.e2e
async def test_version_that_vanishes_between_two_requests_serves_nothing(kube: KubeClient):
    assert await one_by_one(kube, ["nobody.example.com/v1"]) == Served(versions={})


@pytest.mark.e2e
async def test_added_and_removed_kinds_are_changes(kube: KubeClient):
    discovery = Discovery(kube)
    await eventually(lambda: _is_unchanged(discovery))

    schema: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: JsonObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names: JsonObject = {"plural": "things", "kind": "Thing"}
    spec: JsonObject = {"group": "discovery.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    crd = await kube.create(CRDS, {"metadata": {"name": "things.discovery.example.com"}, "spec": spec})
    await eventually(lambda: _is_changed(discovery, is_served=True))
    found = discovery.by_kind("discovery.example.com/v1", "Thing")
    await kube.delete(CRDS, "", "things.discovery.example.com", uid=uid(crd))
    await eventually(lambda: _is_changed(discovery, is_served=False))

    assert found == ResourceInfo(api_version="discovery.example.com/v1", resource="things", kind="Thing", namespaced=True, has_status=True)


async def _is_unchanged(discovery: Discovery) -> None:
    assert await discovery.refresh() is False


async def _is_changed(discovery: Discovery, *, is_served: bool) -> None:
    """Whether this look, and none before it, found the Things served, or gone."""
    assert await discovery.refresh()
    assert (discovery.by_kind("discovery.example.com/v1", "Thing") is not None) is is_served
