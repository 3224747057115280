"""The stand-in for the kubelet, and what a snapshot shows of its work, on a real control plane."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.demo.kubelet import Kubelet
from metaloop.devkit.demo.snapshot import is_ready, objects_of
from metaloop.devkit.testbed.builtin import CLAIMS, PODS, pod
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES, Cluster
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.manifests import config_map

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]


class Pods:
    """The Pods of one namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    async def create(self, name: str, *, restart_policy: str = "Always") -> None:
        spec: JsonObject = {**unstructured.child_object(pod(name), "spec"), "restartPolicy": restart_policy}
        await self.cluster.create(PODS, {**pod(name), "spec": spec}, namespace=self.namespace)

    async def get(self, name: str) -> JsonObject:
        return await self.cluster.get(PODS, self.namespace, name)

    async def phase(self, name: str) -> str:
        return unstructured.text(unstructured.child_object(await self.get(name), "status"), "phase")

    async def reach(self, **phases: str) -> None:
        """Return when the Pods have these phases."""

        async def check() -> None:
            found = {name: await self.phase(name) for name in phases}
            expect(found == phases, f"the phases are {found}")

        await eventually(check)

    @asynccontextmanager
    async def kubelet(self, *, is_unready: Callable[[JsonObject], bool] = lambda _: False, failing: str = "") -> AsyncIterator[Kubelet]:
        """A kubelet that updates them, while the block lasts."""
        kubelet = Kubelet(cluster=self.cluster, namespace=self.namespace, is_unready=is_unready, failing={failing} - {""})
        async with kubelet.running():
            yield kubelet


@pytest_asyncio.fixture(loop_scope="session")
async def pods(shared_plane: ControlPlane) -> AsyncIterator[Pods]:
    async with Cluster.connect(shared_plane) as cluster:
        created = await cluster.create(NAMESPACES, {"metadata": {"generateName": "demo-"}})
        yield Pods(cluster, unstructured.name(created))


async def test_pod_runs_and_becomes_ready(pods: Pods) -> None:
    await pods.create("a")

    async with pods.kubelet():
        await pods.reach(a="Running")

    assert is_ready(await pods.get("a"))


async def test_pod_that_is_to_stay_unready_runs_until_all_become_ready(pods: Pods) -> None:
    await pods.create("a")
    async with pods.kubelet(is_unready=lambda obj: unstructured.name(obj) == "a") as kubelet:
        await pods.reach(a="Running")
        was_ready = is_ready(await pods.get("a"))

        kubelet.make_all_ready()

        async def check() -> None:
            expect(is_ready(await pods.get("a")), "not ready yet")

        await eventually(check)

    assert not was_ready


async def test_pod_that_never_restarts_succeeds_or_fails_once(pods: Pods) -> None:
    await pods.create("good", restart_policy="Never")
    await pods.create("bad", restart_policy="Never")

    async with pods.kubelet(failing="bad") as kubelet:
        await pods.reach(good="Succeeded", bad="Failed")

        await pods.cluster.delete(PODS, pods.namespace, "bad")
        await pods.create("bad", restart_policy="Never")
        await pods.reach(bad="Succeeded")

    assert kubelet.failing == set()


async def test_pod_that_is_up_to_date_is_not_written_again(pods: Pods) -> None:
    await pods.create("current")
    ready: JsonObject = {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    change: JsonObject = {"status": {"phase": "Running", "conditions": [ready]}}
    before = await pods.cluster.patch(PODS, pods.namespace, "current", change, subresource="status")

    await pods.create("new")  # is listed after `current`, so that `current` is looked at first
    async with pods.kubelet():
        await pods.reach(new="Running")

    assert await pods.get("current") == before


async def test_claim_is_bound(pods: Pods) -> None:
    spec: JsonObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim: JsonObject = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "c"}, "spec": spec}
    await pods.cluster.create(CLAIMS, claim, namespace=pods.namespace)

    async def check() -> None:
        found = unstructured.child_object(await pods.cluster.get(CLAIMS, pods.namespace, "c"), "status")
        expect(found.get("phase") == "Bound", f"the status is {found}")

    async with pods.kubelet():
        await eventually(check)


async def test_pods_of_other_namespaces_are_left_alone(pods: Pods) -> None:
    other = Pods(pods.cluster, unstructured.name(await pods.cluster.create(NAMESPACES, {"metadata": {"generateName": "other-"}})))
    await other.create("a")
    await pods.create("a")

    async with pods.kubelet():
        await pods.reach(a="Running")

    assert await other.phase("a") == "Pending"


async def test_snapshot_has_the_objects_of_all_namespaces_by_kind_and_name(pods: Pods) -> None:
    await pods.create("a")
    await pods.cluster.create(CONFIG_MAPS, config_map("c"), namespace=pods.namespace)

    objects = await objects_of(pods.cluster, [PODS, CONFIG_MAPS])

    assert f"{pods.namespace}/a" in objects.of("Pod")
    assert unstructured.name(objects.get("ConfigMap", f"{pods.namespace}/c")) == "c"
    assert objects.get("ConfigMap", "nowhere/c") == {}


async def test_snapshot_leaves_out_what_kubernetes_itself_created(pods: Pods) -> None:
    objects = await objects_of(pods.cluster, [CONFIG_MAPS, NAMESPACES])

    homes = {unstructured.namespace(each) for each in objects.of("ConfigMap").values()} | set(objects.of("Namespace"))
    assert pods.namespace in objects.of("Namespace")
    assert not any(home.startswith(("kube-", "default")) for home in homes)
    assert "kube-root-ca.crt" not in {unstructured.name(each) for each in objects.of("ConfigMap").values()}


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "False"}], False),
        ([{"type": "Initialized", "status": "True"}], False),
        ([{"type": "Initialized", "status": "False"}, {"type": "Ready", "status": "True"}], True),
        ([], False),
        (None, False),
    ],
)
async def test_pod_is_ready_by_its_condition_alone(conditions: list[JsonObject] | None, *, ready: bool) -> None:
    assert is_ready({"status": {"phase": "Running", "conditions": conditions}}) is ready  # type: ignore[dict-item]
