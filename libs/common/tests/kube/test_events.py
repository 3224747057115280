"""Events in a real cluster."""

import pytest

from metaloop.common.json import JsonObject, is_object
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.events import EVENTS, MAX_MESSAGE_BYTES, QUEUE_LENGTH, EventRecorder
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.unstructured import child_object, name, uid

pytestmark = pytest.mark.e2e

CONFIG_MAPS = ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True)
CLUSTER_ROLES = ResourceInfo(api_version="rbac.authorization.k8s.io/v1", resource="clusterroles", kind="ClusterRole", namespaced=False)


async def events_about(kube: KubeClient, obj: JsonObject, namespace: str) -> list[JsonObject]:
    page = await kube.list_page(EVENTS, namespace, {"fieldSelector": f"involvedObject.uid={uid(obj)}"})
    found = page["items"]
    assert isinstance(found, list)
    return [item for item in found if is_object(item)]


async def a_config_map(kube: KubeClient, namespace: str) -> JsonObject:
    meta: JsonObject = {"namespace": namespace, "name": "a"}
    return await kube.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


async def test_event_names_the_object_and_what_happened(kube: KubeClient, namespace: str):
    obj = await a_config_map(kube, namespace)

    async with EventRecorder.running(kube) as events:
        events.record(obj, "Warning", "SyncError", "Sync error: no")
        await events.written()

    [event] = await events_about(kube, obj, namespace)
    assert (event["type"], event["reason"], event["message"], event["count"]) == ("Warning", "SyncError", "Sync error: no", 1)
    assert event["source"] == {"component": "metacontroller"}
    assert child_object(event, "involvedObject")["kind"] == "ConfigMap"
    assert event["firstTimestamp"] == event["lastTimestamp"] is not None


async def test_repeats_are_counted_on_one_event(kube: KubeClient, namespace: str):
    obj = await a_config_map(kube, namespace)

    async with EventRecorder.running(kube) as events:
        for _ in range(3):
            events.record(obj, "Warning", "SyncError", "Sync error: no")
        await events.written()

    [event] = await events_about(kube, obj, namespace)
    assert event["count"] == 3


async def test_repetition_of_a_deleted_event_creates_it_again(kube: KubeClient, namespace: str):
    obj = await a_config_map(kube, namespace)
    async with EventRecorder.running(kube) as events:
        events.record(obj, "Normal", "Synced", "ok")
        await events.written()
        [event] = await events_about(kube, obj, namespace)
        await kube.delete(EVENTS, namespace, name(event), uid=uid(event))
        events.record(obj, "Normal", "Synced", "ok")
        await events.written()

    [event] = await events_about(kube, obj, namespace)
    assert event["count"] == 2


async def test_events_of_cluster_scoped_objects_are_in_the_default_namespace(kube: KubeClient):
    role = await kube.create(CLUSTER_ROLES, {"metadata": {"name": "system:a role"}, "rules": []})

    async with EventRecorder.running(kube) as events:
        events.record(role, "Normal", "Started", "Started")
        await events.written()

    assert len(await events_about(kube, role, "default")) == 1


async def test_message_of_any_length_and_content_is_written(kube: KubeClient, namespace: str):
    obj = await a_config_map(kube, namespace)

    async with EventRecorder.running(kube) as events:
        events.record(obj, "Warning", "SyncError", "\ud800" + "ü" * 5000)
        await events.written()

    [event] = await events_about(kube, obj, namespace)
    assert str(event["message"]).startswith("?üü")
    assert len(str(event["message"]).encode()) <= MAX_MESSAGE_BYTES


async def test_events_beyond_the_queue_are_dropped_without_waiting(kube: KubeClient, namespace: str):
    obj = await a_config_map(kube, namespace)
    strangers: list[JsonObject] = [
        {"metadata": {"uid": str(index), "namespace": "not-there", "name": "x"}} for index in range(QUEUE_LENGTH)
    ]

    async with EventRecorder.running(kube) as events:
        for stranger in strangers:
            events.record(stranger, "Normal", "Synced", "ok")
        events.record(obj, "Normal", "Synced", "ok")

    assert await events_about(kube, obj, namespace) == []
