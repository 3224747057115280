"""The client against a real API server."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from metaloop.common.errors import Conflict, MetaloopError, Refused
from metaloop.common.json import JsonObject, dumps, is_object
from metaloop.common.kube.client import APPLY_PATCH, MERGE_PATCH, KubeClient
from metaloop.common.kube.errors import AlreadyExists, Forbidden, Invalid, NotFound
from metaloop.common.kube.stream import WatchEvent, watch_event
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.unstructured import annotations, child_object, is_deleting, metadata, name, resource_version, text, uid
from metaloop.devkit.controlplane import ControlPlane

pytestmark = pytest.mark.e2e

Write = Callable[[dict[str, object], dict[str, object]], str]

CONFIG_MAPS = ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True)
NAMESPACES = ResourceInfo(api_version="v1", resource="namespaces", kind="Namespace", namespaced=False)
ROLES = ResourceInfo(api_version="rbac.authorization.k8s.io/v1", resource="roles", kind="Role", namespaced=True)
DEPLOYMENTS = ResourceInfo(api_version="apps/v1", resource="deployments", kind="Deployment", namespaced=True, has_status=True)


def config_map(namespace: str, name: str, **data: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}, "data": {**data}}


def items(page: JsonObject) -> list[JsonObject]:
    found = page["items"]
    assert isinstance(found, list)
    return [item for item in found if is_object(item)]


async def test_created_object_can_be_read(kube: KubeClient, namespace: str):
    created = await kube.create(CONFIG_MAPS, config_map(namespace, "a", key="value"))

    assert await kube.get(CONFIG_MAPS, namespace, "a") == created
    assert created["data"] == {"key": "value"}


async def test_second_object_of_a_name_already_exists(kube: KubeClient, namespace: str):
    await kube.create(CONFIG_MAPS, config_map(namespace, "a"))

    with pytest.raises(AlreadyExists):
        await kube.create(CONFIG_MAPS, config_map(namespace, "a"))


async def test_missing_object_is_not_found(kube: KubeClient, namespace: str):
    with pytest.raises(NotFound) as raised:
        await kube.get(CONFIG_MAPS, namespace, "a")

    assert raised.value.status.code == 404


async def test_object_that_violates_the_rules_is_invalid(kube: KubeClient, namespace: str):
    with pytest.raises(Invalid, match=r"metadata\.name"):
        await kube.create(CONFIG_MAPS, config_map(namespace, "No Name"))


async def test_replacing_an_outdated_version_is_a_conflict(kube: KubeClient, namespace: str):
    created = await kube.create(CONFIG_MAPS, config_map(namespace, "a"))
    replaced = await kube.replace(CONFIG_MAPS, {**created, "data": {"x": "1"}})

    assert replaced["data"] == {"x": "1"}
    with pytest.raises(Conflict):
        await kube.replace(CONFIG_MAPS, {**created, "data": {"x": "2"}})


async def test_patch_changes_only_its_fields(kube: KubeClient, namespace: str):
    await kube.create(CONFIG_MAPS, config_map(namespace, "a", kept="1", gone="2"))

    patched = await kube.patch(CONFIG_MAPS, namespace, "a", dumps({"data": {"gone": None, "new": "3"}}), MERGE_PATCH)

    assert patched["data"] == {"kept": "1", "new": "3"}


async def test_patching_an_outdated_version_is_a_conflict(kube: KubeClient, namespace: str):
    created = await kube.create(CONFIG_MAPS, config_map(namespace, "a"))
    change = dumps({"metadata": {"resourceVersion": resource_version(created)}, "data": {"x": "1"}})
    await kube.patch(CONFIG_MAPS, namespace, "a", change, MERGE_PATCH)

    with pytest.raises(Conflict):
        await kube.patch(CONFIG_MAPS, namespace, "a", change.replace(b'"1"', b'"2"'), MERGE_PATCH)


async def test_patching_another_object_of_the_same_name_is_invalid(kube: KubeClient, namespace: str):
    await kube.create(CONFIG_MAPS, config_map(namespace, "a"))

    with pytest.raises(Invalid, match="uid"):
        await kube.patch(CONFIG_MAPS, namespace, "a", dumps({"metadata": {"uid": "another"}, "data": {"x": "1"}}), MERGE_PATCH)


async def test_applying_another_managers_field_is_a_conflict_unless_forced(kube: KubeClient, namespace: str):
    async def apply(value: str, **params: str) -> JsonObject:
        return await kube.patch(CONFIG_MAPS, namespace, "a", dumps(config_map(namespace, "a", key=value)), APPLY_PATCH, params)

    await apply("mine", fieldManager="me")

    with pytest.raises(Conflict):
        await apply("yours", fieldManager="you")
    assert (await apply("yours", fieldManager="you", force="true"))["data"] == {"key": "yours"}


async def test_status_is_replaced_and_patched_separately(kube: KubeClient, namespace: str):
    labels: JsonObject = {"app": "a"}
    pod: JsonObject = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    created = await kube.create(
        DEPLOYMENTS,
        {"metadata": {"namespace": namespace, "name": "a"}, "spec": {"paused": True, "selector": {"matchLabels": labels}, "template": pod}},
    )

    patched = await kube.patch(DEPLOYMENTS, namespace, "a", dumps({"status": {"replicas": 3}}), MERGE_PATCH, subresource="status")

    assert child_object(patched, "status")["replicas"] == 3
    assert patched["spec"] == created["spec"]


async def test_only_the_object_with_the_given_uid_is_deleted(kube: KubeClient, namespace: str):
    created = await kube.create(CONFIG_MAPS, config_map(namespace, "a"))

    with pytest.raises(Conflict):
        await kube.delete(CONFIG_MAPS, namespace, "a", uid="another")
    with pytest.raises(Conflict):
        await kube.delete(CONFIG_MAPS, namespace, "a", uid=uid(created), resource_version="1")
    await kube.delete(CONFIG_MAPS, namespace, "a", uid=uid(created), resource_version=resource_version(created))

    with pytest.raises(NotFound):
        await kube.get(CONFIG_MAPS, namespace, "a")


async def test_deleted_object_with_a_finalizer_is_returned(kube: KubeClient, namespace: str):
    obj = config_map(namespace, "a")
    metadata(obj)["finalizers"] = ["example.com/keep"]
    created = await kube.create(CONFIG_MAPS, obj)

    answer = await kube.delete(CONFIG_MAPS, namespace, "a", uid=uid(created))

    assert is_deleting(answer)


async def test_list_is_read_page_by_page(kube: KubeClient, namespace: str):
    for letter in "abc":
        await kube.create(CONFIG_MAPS, config_map(namespace, letter))

    params = {"limit": "2", "fieldSelector": "metadata.name!=kube-root-ca.crt"}
    first = await kube.list_page(CONFIG_MAPS, namespace, params)
    second = await kube.list_page(CONFIG_MAPS, namespace, params | {"continue": text(metadata(first), "continue")})

    assert [name(item) for page in (first, second) for item in items(page)] == ["a", "b", "c"]


async def test_name_with_colons_is_not_escaped(kube: KubeClient, namespace: str):
    await kube.create(ROLES, {"metadata": {"namespace": namespace, "name": "system:a role"}, "rules": []})

    found = await kube.get(ROLES, namespace, "system:a role")

    assert name(found) == "system:a role"


@pytest.mark.parametrize(
    "crooked", ["", ".", "..", "a/status", "../configmaps/a", "a?dryRun=All", "a#", "%2e%2e/configmaps/a", "a%2f", "b/../a"]
)
async def test_name_cannot_address_another_object(kube: KubeClient, namespace: str, crooked: str):
    created = await kube.create(CONFIG_MAPS, config_map(namespace, "a"))

    with pytest.raises(Refused):
        await kube.delete(CONFIG_MAPS, namespace, crooked, uid=uid(created))

    assert await kube.get(CONFIG_MAPS, namespace, "a") == created


@pytest.mark.parametrize("crooked", [".", "..", "../..", "a/configmaps", "a?dryRun=All", "%2e%2e"])
async def test_namespace_cannot_address_another_path(kube: KubeClient, crooked: str):
    with pytest.raises(Refused):
        await kube.create(CONFIG_MAPS, config_map(crooked, "a"))


async def test_namespaced_object_without_namespace_is_never_sent(kube: KubeClient):
    with pytest.raises(Invalid, match="needs a namespace"):
        await kube.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
    with pytest.raises(Invalid, match="needs a namespace"):
        await kube.get(CONFIG_MAPS, "", "a")


async def test_creating_in_a_terminating_namespace_is_refused(kube: KubeClient, namespace: str):
    await kube.delete(NAMESPACES, "", namespace, uid=uid(await kube.get(NAMESPACES, "", namespace)))

    with pytest.raises((Forbidden, NotFound)):
        await kube.create(CONFIG_MAPS, config_map(namespace, "a"))


async def test_many_requests_share_the_connections(kube: KubeClient, namespace: str):
    async with asyncio.TaskGroup() as group:
        for index in range(200):
            group.create_task(kube.create(CONFIG_MAPS, config_map(namespace, f"a{index}")))

    page = await kube.list_page(CONFIG_MAPS, namespace)
    assert len(items(page)) >= 200


async def test_watch_yields_lines_of_any_length(kube: KubeClient, namespace: str):
    start = resource_version(await kube.list_page(CONFIG_MAPS, namespace))
    params = {"resourceVersion": start, "fieldSelector": "metadata.name=a"}
    async with aclosing(kube.watch_lines(CONFIG_MAPS.collection_path(namespace), params)) as lines:
        big = await kube.create(CONFIG_MAPS, config_map(namespace, "a", big="x" * 900_000))
        await kube.patch(CONFIG_MAPS, namespace, "a", dumps({"metadata": {"annotations": {"a": "b"}}}), MERGE_PATCH)
        await kube.delete(CONFIG_MAPS, namespace, "a", uid=uid(big))

        events: list[WatchEvent] = []
        while len(events) < 3:
            events += map(watch_event, await anext(lines))

    assert events[0] == WatchEvent("ADDED", big | {"kind": "ConfigMap", "apiVersion": "v1"})
    assert [event.type for event in events[1:]] == ["MODIFIED", "DELETED"]
    assert annotations(events[1].object) == {"a": "b"}


async def test_watch_ends_when_the_api_server_ends_it(kube: KubeClient, namespace: str):
    async with aclosing(kube.watch_lines(CONFIG_MAPS.collection_path(namespace), {"timeoutSeconds": "1", "resourceVersion": "0"})) as lines:
        seen = [watch_event(line).type async for together in lines for line in together]

    assert set(seen) <= {"ADDED"}


async def test_watches_do_not_count_as_requests_in_flight(plane: ControlPlane, namespace: str):
    async with KubeClient.connect(str(plane.kubeconfig_path), connections=1) as kube:
        path, params = CONFIG_MAPS.collection_path(namespace), {"resourceVersion": "0", "allowWatchBookmarks": "true"}
        await kube.create(CONFIG_MAPS, config_map(namespace, "a"))
        async with aclosing(kube.watch_lines(path, params)) as one, aclosing(kube.watch_lines(path, params)) as other:
            await anext(one)
            await anext(other)

            found = await kube.get(CONFIG_MAPS, namespace, "a")

    assert name(found) == "a"


async def test_watch_of_a_missing_resource_is_not_found(kube: KubeClient):
    with pytest.raises(NotFound):
        async with aclosing(kube.watch_lines("/apis/example.com/v1/things")) as lines:
            await anext(lines)


async def test_unreachable_api_server_is_unavailable(write_kubeconfig: Write):
    async with KubeClient.connect(write_kubeconfig({"server": "http://127.0.0.1:1"}, {})) as kube:
        with pytest.raises(MetaloopError, match="GET /version"):
            await kube.request("GET", "/version")
