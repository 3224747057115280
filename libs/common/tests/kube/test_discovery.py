import pytest

from metaloop.common.json import JsonObject, loads
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.discovery import Discovery, Served, aggregated, group_versions, merged, one_by_one, resource_list, retained
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.unstructured import uid
from metaloop.devkit.testbed.eventually import eventually

CRDS = ResourceInfo(
    api_version="apiextensions.k8s.io/v1", resource="customresourcedefinitions", kind="CustomResourceDefinition", namespaced=False
)
DEPLOYMENTS = ResourceInfo(api_version="apps/v1", resource="deployments", kind="Deployment", namespaced=True, has_status=True)
METRICS = ResourceInfo(api_version="metrics.example.com/v1", resource="loads", kind="Load", namespaced=True)


def by_id(*infos: ResourceInfo) -> dict[ResourceId, ResourceInfo]:
    return {info.id: info for info in infos}


def test_a_version_that_is_still_served_is_taken_as_it_is():
    now = Served(versions={"apps/v1": (DEPLOYMENTS,)})

    assert retained({}, now) == by_id(DEPLOYMENTS)


def test_a_version_that_could_not_tell_keeps_what_was_known():
    now = Served(versions={"apps/v1": (DEPLOYMENTS,)}, unknown=frozenset({"metrics.example.com/v1"}))

    assert retained(by_id(METRICS), now) == by_id(DEPLOYMENTS, METRICS)


def test_a_version_that_is_gone_is_forgotten():
    now = Served(versions={"apps/v1": (DEPLOYMENTS,)})

    assert retained(by_id(DEPLOYMENTS, METRICS), now) == by_id(DEPLOYMENTS)


def test_a_stale_group_is_one_that_could_not_tell():
    answer: JsonObject = {
        "kind": "APIGroupDiscoveryList",
        "items": [{"metadata": {"name": "metrics.example.com"}, "versions": [{"version": "v1", "freshness": "Stale"}]}],
    }

    assert aggregated(answer).unknown == {"metrics.example.com/v1"}


def test_what_is_listed_for_its_subresources_only_is_no_resource():
    answer: JsonObject = {
        "items": [{"metadata": {"name": "g"}, "versions": [{"version": "v1", "resources": [{"resource": "x", "subresources": []}]}]}],
    }

    assert aggregated(answer).versions == {"g/v1": ()}


def test_subresources_are_a_property_of_their_resource():
    answer: JsonObject = {
        "resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": True},
            {"name": "deployments/status", "kind": "Deployment", "namespaced": True},
        ]
    }

    assert resource_list("apps/v1", answer) == (DEPLOYMENTS,)


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
async def test_an_older_server_tells_the_same_group_by_group(kube: KubeClient):
    discovery = Discovery(kube)
    await discovery.refresh()

    looks = [await one_by_one(kube, group_versions(loads(await kube.request("GET", root)))) for root in ("/api", "/apis")]

    assert retained({}, merged(looks)) == discovery.resources()


@pytest.mark.e2e
async def test_a_version_that_vanishes_between_two_questions_serves_nothing(kube: KubeClient):
    assert await one_by_one(kube, ["example.com/v1"]) == Served(versions={})


@pytest.mark.e2e
async def test_a_new_kind_is_a_change_and_so_is_its_end(kube: KubeClient):
    discovery = Discovery(kube)
    await discovery.refresh()
    assert await discovery.refresh() is False

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
    await changed(discovery)
    found = discovery.by_kind("discovery.example.com/v1", "Thing")
    await kube.delete(CRDS, "", "things.discovery.example.com", uid=uid(crd))
    await changed(discovery)

    assert found == ResourceInfo(api_version="discovery.example.com/v1", resource="things", kind="Thing", namespaced=True, has_status=True)
    assert discovery.by_kind("discovery.example.com/v1", "Thing") is None


async def changed(discovery: Discovery) -> None:
    async def look() -> None:
        assert await discovery.refresh()

    await eventually(look, within_seconds=20)
