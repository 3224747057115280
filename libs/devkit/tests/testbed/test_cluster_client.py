"""The testbed's client of an API server, before a real one: what each request does and returns."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from metaloop.common.objects import unstructured
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.builtin import PODS, pod
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES, ApiRefused, Cluster
from metaloop.devkit.testbed.manifests import config_map

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(shared_plane: ControlPlane) -> AsyncIterator[Cluster]:
    async with Cluster.connect(shared_plane) as cluster:
        yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(cluster: Cluster) -> str:
    return unstructured.name(await cluster.create(NAMESPACES, {"metadata": {"generateName": "client-"}}))


async def test_created_object_is_returned_as_the_server_stored_it(cluster: Cluster, namespace: str) -> None:
    created = await cluster.create(CONFIG_MAPS, config_map("a", data={"text": "x"}), namespace=namespace)

    assert (unstructured.namespace(created), created["data"]) == (namespace, {"text": "x"})
    assert unstructured.uid(created)
    assert await cluster.get(CONFIG_MAPS, namespace, "a") == created


async def test_missing_object_is_none_or_a_failed_assertion(cluster: Cluster, namespace: str) -> None:
    assert await cluster.find(CONFIG_MAPS, namespace, "none") is None
    with pytest.raises(AssertionError, match=f"no configmaps {namespace}/none"):
        await cluster.get(CONFIG_MAPS, namespace, "none")


async def test_refusal_has_the_status_and_the_message_of_the_server(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAPS, config_map("a"), namespace=namespace)

    with pytest.raises(ApiRefused, match="already exists") as refused:
        await cluster.create(CONFIG_MAPS, config_map("a"), namespace=namespace)

    assert refused.value.code == 409


async def test_list_is_limited_by_namespace_and_labels(cluster: Cluster, namespace: str) -> None:
    for name, label in (("a", "one"), ("b", "two")):
        await cluster.create(CONFIG_MAPS, config_map(name, labels={"client": label}), namespace=namespace)

    everywhere = {unstructured.namespace(each) for each in await cluster.list(CONFIG_MAPS)}
    found = [unstructured.name(each) for each in await cluster.list(CONFIG_MAPS, namespace, labels="client=two")]

    assert {"kube-system", namespace} <= everywhere
    assert found == ["b"]


async def test_merge_patch_keeps_other_fields_and_null_removes_one(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAPS, config_map("a", data={"old": "1", "gone": "1"}), namespace=namespace)

    changed = await cluster.patch(CONFIG_MAPS, namespace, "a", {"data": {"new": "1", "gone": None}})

    assert changed["data"] == {"old": "1", "new": "1"}


async def test_patch_of_a_subresource_changes_nothing_else(cluster: Cluster, namespace: str) -> None:
    await cluster.create(PODS, pod("a"), namespace=namespace)

    change = {"metadata": {"labels": {"not": "taken"}}, "status": {"phase": "Running"}}
    changed = await cluster.patch(PODS, namespace, "a", change, subresource="status")  # type: ignore[arg-type]

    assert unstructured.child_object(changed, "status")["phase"] == "Running"


async def test_replacement_of_an_older_version_is_a_conflict(cluster: Cluster, namespace: str) -> None:
    created = await cluster.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
    replaced = await cluster.replace(CONFIG_MAPS, {**created, "data": {"text": "x"}}, namespace=namespace, name="a")

    with pytest.raises(ApiRefused) as refused:
        await cluster.replace(CONFIG_MAPS, {**created, "data": {}}, namespace=namespace, name="a")

    assert replaced["data"] == {"text": "x"}
    assert refused.value.code == 409


async def test_deletion_of_a_missing_object_is_no_error(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAPS, config_map("a"), namespace=namespace)

    await cluster.delete(CONFIG_MAPS, namespace, "a")
    await cluster.delete(CONFIG_MAPS, namespace, "a")

    assert await cluster.find(CONFIG_MAPS, namespace, "a") is None


async def test_deletion_by_label_leaves_other_objects(cluster: Cluster, namespace: str) -> None:
    for name, label in (("a", "gone"), ("b", "gone"), ("c", "stays")):
        await cluster.create(CONFIG_MAPS, config_map(name, labels={"client": label}), namespace=namespace)

    await cluster.delete_all(CONFIG_MAPS, labels="client=gone", namespace=namespace)

    assert [unstructured.name(each) for each in await cluster.list(CONFIG_MAPS, namespace, labels="client")] == ["c"]


async def test_watch_goes_on_from_the_given_version(cluster: Cluster, namespace: str) -> None:
    first = await cluster.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
    await cluster.patch(CONFIG_MAPS, namespace, "a", {"data": {"text": "x"}})
    await cluster.delete(CONFIG_MAPS, namespace, "a")
    seen: list[object] = []

    async for event in cluster.watch(CONFIG_MAPS, namespace, resource_version=unstructured.resource_version(first)):
        if unstructured.name(unstructured.child_object(event, "object")) == "a":
            seen.append(event["type"])
        if "DELETED" in seen:
            break

    assert seen == ["MODIFIED", "DELETED"]
