"""What the services rely on of an API server. The model of the simulation and a real one have it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from random import Random

import pytest
import pytest_asyncio

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import MERGE_PATCH, KubeClient
from metaloop.common.kube.discovery import Discovery
from metaloop.common.kube.errors import AlreadyExists, Invalid, NotFound
from metaloop.common.kube.request_limiter import RequestLimiter
from metaloop.common.kube.stream import WatchEvent, watch_event
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.cluster import NAMESPACES, Cluster
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import parent_resource
from metaloop.simulation.cluster.server import ApiServer
from metaloop.simulation.faultplan import FaultPlan
from metaloop.simulation.history import History
from metaloop.simulation.network import Network, Port

THINGS = parent_resource("modelled")
CONFIG_MAPS = ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True)
_COLLECTED_SECONDS = 90.0


def model() -> KubeClient:
    """A client of the simulation's model, on real time."""
    server = ApiServer(Network(random=Random(1), faults=FaultPlan()), History())
    server.store.serve(THINGS, CONFIG_MAPS, NAMESPACES)
    return KubeClient(server.transport(Port("test")), limiter=RequestLimiter(maximum=8))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def plane(shared_plane: ControlPlane) -> ControlPlane:
    async with Cluster.connect(shared_plane) as cluster:
        await install_parent(cluster, THINGS)
    return shared_plane


@pytest_asyncio.fixture
async def real(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with KubeClient.connect(str(plane.kubeconfig_path)) as kube:
        yield kube


@pytest.fixture(params=["model", pytest.param("real", marks=pytest.mark.e2e)])
def kube(request: pytest.FixtureRequest) -> KubeClient:
    return model() if request.param == "model" else request.getfixturevalue("real")


@pytest_asyncio.fixture
async def space(kube: KubeClient, request: pytest.FixtureRequest) -> str:
    """A namespace of its own."""
    name = f"t-{abs(hash(request.node.nodeid)):x}"
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def new(space: str, info: ResourceInfo = THINGS, *, name: str = "a", **parts: object) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": space, **parts.pop("metadata", {})}  # type: ignore[dict-item]
    return {"apiVersion": info.api_version, "kind": info.kind, "metadata": metadata, **parts}  # type: ignore[dict-item]


def version(obj: JsonObject) -> str:
    return unstructured.resource_version(obj)


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(_COLLECTED_SECONDS):
        while not await condition():  # noqa: ASYNC110 - the condition has no event
            await asyncio.sleep(0.05)


async def test_a_new_object_has_uid_version_and_generation(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space, spec={"size": 1}, status={"forged": True}))

    assert unstructured.uid(made)
    assert int(version(made)) > 0
    assert unstructured.generation(made) == 1
    assert "status" not in made


async def test_a_name_is_given_once(kube: KubeClient, space: str):
    await kube.create(THINGS, new(space))

    with pytest.raises(AlreadyExists):
        await kube.create(THINGS, new(space))


async def test_what_is_not_there_is_not_found(kube: KubeClient, space: str):
    with pytest.raises(NotFound):
        await kube.get(THINGS, space, "a")
    with pytest.raises(NotFound):
        await kube.replace(CONFIG_MAPS, new(space, CONFIG_MAPS))
    with pytest.raises(NotFound):
        await kube.delete(THINGS, space, "a", uid="x")
    with pytest.raises(NotFound):
        await kube.patch(THINGS, space, "a", dumps({"spec": {}}), MERGE_PATCH)


async def test_an_older_version_is_not_replaced(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space))
    await kube.replace(THINGS, {**made, "spec": {"size": 1}})

    with pytest.raises(Conflict):
        await kube.replace(THINGS, {**made, "spec": {"size": 2}})


async def test_a_custom_resource_is_replaced_only_by_its_version(kube: KubeClient, space: str):
    await kube.create(THINGS, new(space))

    with pytest.raises(Invalid):
        await kube.replace(THINGS, new(space, spec={"size": 1}))


async def test_a_config_map_is_replaced_without_a_version(kube: KubeClient, space: str):
    await kube.create(CONFIG_MAPS, new(space, CONFIG_MAPS))

    replaced = await kube.replace(CONFIG_MAPS, new(space, CONFIG_MAPS, data={"key": "value"}))

    assert replaced["data"] == {"key": "value"}


async def test_another_uid_is_a_conflict(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space))

    with pytest.raises(Conflict):
        await kube.replace(THINGS, {**made, "metadata": {**unstructured.metadata(made), "uid": "other"}})
    with pytest.raises(Conflict):
        await kube.delete(THINGS, space, "a", uid="other")


async def test_a_deletion_of_an_older_version_is_a_conflict(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space))
    await kube.replace(THINGS, {**made, "spec": {"size": 1}})

    with pytest.raises(Conflict):
        await kube.delete(THINGS, space, "a", uid=unstructured.uid(made), resource_version=version(made))


async def test_a_write_that_changes_nothing_makes_no_version(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space, spec={"size": 1}))

    assert version(await kube.replace(THINGS, made)) == version(made)
    assert version(await kube.patch(THINGS, space, "a", dumps({"spec": {"size": 1}}), MERGE_PATCH)) == version(made)


async def test_spec_and_status_are_written_apart(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space, spec={"size": 1}))
    both: JsonObject = {**made, "spec": {"size": 2}, "status": {"ready": True}}

    by_status = await kube.replace(THINGS, both, "status")
    by_spec = await kube.replace(THINGS, {**by_status, "spec": {"size": 2}, "status": {"ready": False}})

    assert (by_status["spec"], by_status["status"], unstructured.generation(by_status)) == ({"size": 1}, {"ready": True}, 1)
    assert (by_spec["spec"], by_spec["status"], unstructured.generation(by_spec)) == ({"size": 2}, {"ready": True}, 2)


async def test_metadata_is_no_other_generation(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space))

    labelled = await kube.patch(THINGS, space, "a", dumps({"metadata": {"labels": {"a": "b"}}}), MERGE_PATCH)

    assert unstructured.generation(labelled) == unstructured.generation(made)
    assert version(labelled) != version(made)


async def test_a_merge_patch_has_preconditions(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space))
    await kube.replace(THINGS, {**made, "spec": {"size": 1}})

    with pytest.raises(Conflict):
        await kube.patch(THINGS, space, "a", dumps({"metadata": {"resourceVersion": version(made)}, "spec": {"size": 2}}), MERGE_PATCH)
    with pytest.raises(Invalid):
        await kube.patch(THINGS, space, "a", dumps({"metadata": {"uid": "other"}}), MERGE_PATCH)


async def test_a_merge_patch_removes_what_is_null(kube: KubeClient, space: str):
    await kube.create(CONFIG_MAPS, new(space, CONFIG_MAPS, data={"a": "1", "b": "2"}))

    patched = await kube.patch(CONFIG_MAPS, space, "a", dumps({"data": {"a": None, "c": "3"}}), MERGE_PATCH)

    assert patched["data"] == {"b": "2", "c": "3"}


async def test_an_object_without_finalizers_is_gone_at_once(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space))

    answer = await kube.delete(THINGS, space, "a", uid=unstructured.uid(made))

    assert answer["kind"] == "Status"
    with pytest.raises(NotFound):
        await kube.get(THINGS, space, "a")


async def test_an_object_with_finalizers_stays_until_the_last_is_removed(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space, metadata={"finalizers": ["example.com/a", "example.com/b"]}))
    deleting = await kube.delete(THINGS, space, "a", uid=unstructured.uid(made))
    again = await kube.delete(THINGS, space, "a", uid=unstructured.uid(made))
    one_left = await kube.patch(THINGS, space, "a", dumps({"metadata": {"finalizers": ["example.com/b"]}}), MERGE_PATCH)
    last = await kube.patch(THINGS, space, "a", dumps({"metadata": {"finalizers": None}}), MERGE_PATCH)

    assert unstructured.is_deleting(deleting)
    assert (version(again), unstructured.generation(deleting)) == (version(deleting), 2)
    assert unstructured.finalizers(one_left) == ["example.com/b"]
    assert unstructured.is_deleting(last)
    with pytest.raises(NotFound):
        await kube.get(THINGS, space, "a")


async def test_what_is_being_deleted_gets_no_new_finalizer(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space, metadata={"finalizers": ["example.com/a"]}))
    await kube.delete(THINGS, space, "a", uid=unstructured.uid(made))

    with pytest.raises(Invalid):
        await kube.patch(THINGS, space, "a", dumps({"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}), MERGE_PATCH)
    await kube.patch(THINGS, space, "a", dumps({"metadata": {"finalizers": None}}), MERGE_PATCH)


async def test_a_dry_run_stores_nothing(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space))
    dry = {"dryRun": "All"}

    await kube.create(THINGS, new(space, name="b"), params=dry)
    tried = await kube.replace(THINGS, {**made, "spec": {"size": 1}}, params=dry)

    assert (tried["spec"], version(tried)) == ({"size": 1}, version(made))
    assert version(await kube.get(THINGS, space, "a")) == version(made)
    with pytest.raises(NotFound):
        await kube.get(THINGS, space, "b")


async def test_a_list_comes_in_pages(kube: KubeClient, space: str):
    for name in ("c", "a", "b"):
        await kube.create(THINGS, new(space, name=name))

    first = await kube.list_page(THINGS, space, {"limit": "2"})
    token = unstructured.text(unstructured.metadata(first), "continue")
    second = await kube.list_page(THINGS, space, {"limit": "2", "continue": token})

    pages = [[unstructured.name(each) for each in unstructured.child_objects(page, "items")] for page in (first, second)]
    assert pages == [["a", "b"], ["c"]]
    assert not unstructured.text(unstructured.metadata(second), "continue")


async def test_a_list_is_filtered_by_labels(kube: KubeClient, space: str):
    await kube.create(THINGS, new(space, name="a", metadata={"labels": {"size": "big"}}))
    await kube.create(THINGS, new(space, name="b", metadata={"labels": {"size": "small"}}))

    page = await kube.list_page(THINGS, space, {"labelSelector": "size=big"})

    assert [unstructured.name(each) for each in unstructured.child_objects(page, "items")] == ["a"]


async def test_what_only_deleted_owners_had_is_collected(kube: KubeClient, space: str):
    owner = await kube.create(CONFIG_MAPS, new(space, CONFIG_MAPS, name="owner"))
    other = await kube.create(CONFIG_MAPS, new(space, CONFIG_MAPS, name="other"))
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": unstructured.name(each), "uid": unstructured.uid(each)} for each in (owner, other)
    ]
    await kube.create(CONFIG_MAPS, new(space, CONFIG_MAPS, name="child", metadata={"ownerReferences": references[:1]}))
    await kube.create(CONFIG_MAPS, new(space, CONFIG_MAPS, name="shared", metadata={"ownerReferences": references}))

    await kube.delete(CONFIG_MAPS, space, "owner", uid=unstructured.uid(owner))

    async def is_collected() -> bool:
        with suppress(NotFound):
            await kube.get(CONFIG_MAPS, space, "child")
            return False
        return len(unstructured.child_objects(unstructured.metadata(await kube.get(CONFIG_MAPS, space, "shared")), "ownerReferences")) == 1

    await eventually(is_collected)


async def events(kube: KubeClient, space: str, count: int, **params: str) -> list[WatchEvent]:
    """The next events of a watch."""
    found: list[WatchEvent] = []
    path = THINGS.collection_path(space)
    async with asyncio.timeout(_COLLECTED_SECONDS), aclosing(kube.watch_lines(path, params)) as lines:
        async for together in lines:
            found += map(watch_event, together)
            if len(found) >= count:
                break
    return found[:count]


async def test_a_streaming_list_ends_with_a_bookmark(kube: KubeClient, space: str):
    await kube.create(THINGS, new(space, name="a"))
    await kube.create(THINGS, new(space, name="b"))

    found = await events(
        kube, space, 3, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", resourceVersion="", allowWatchBookmarks="true"
    )

    assert [each.type for each in found] == ["ADDED", "ADDED", "BOOKMARK"]
    assert unstructured.annotations(found[-1].object)["k8s.io/initial-events-end"] == "true"
    assert int(version(found[-1].object)) >= max(int(version(each.object)) for each in found[:-1])


async def test_a_watch_goes_on_from_a_version(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space))
    changed = await kube.replace(THINGS, {**made, "spec": {"size": 1}})
    await kube.delete(THINGS, space, "a", uid=unstructured.uid(made))

    found = await events(kube, space, 2, resourceVersion=version(made))

    assert [each.type for each in found] == ["MODIFIED", "DELETED"]
    assert version(found[0].object) == version(changed)
    assert int(version(found[1].object)) > int(version(changed))


async def test_what_leaves_the_scope_of_a_watch_is_deleted_there(kube: KubeClient, space: str):
    made = await kube.create(THINGS, new(space, metadata={"labels": {"size": "big"}}))
    for size in ("small", "big"):
        await kube.patch(THINGS, space, "a", dumps({"metadata": {"labels": {"size": size}}}), MERGE_PATCH)

    found = await events(kube, space, 2, resourceVersion=version(made), labelSelector="size=big")

    assert [each.type for each in found] == ["DELETED", "ADDED"]


async def test_discovery_lists_what_is_served(kube: KubeClient):
    discovery = Discovery(kube)

    async def is_listed() -> bool:
        await discovery.refresh()
        return discovery.by_kind(THINGS.api_version, THINGS.kind) is not None

    await eventually(is_listed)  # a real server lists a kind a moment after it serves it
    assert discovery.by_kind(THINGS.api_version, THINGS.kind) == THINGS
    assert discovery.by_resource("v1", "configmaps") == CONFIG_MAPS
