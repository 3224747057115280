"""A real control plane for the tests of this folder that need one, and a namespace of its own for each of them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from metaloop.common.kube.client import KubeClient
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.apiproxy import ApiProxy
from metaloop.devkit.testbed.cluster import COMPOSITES, NAMESPACES, Cluster
from metaloop.devkit.testbed.lab import install_crds

from .scenes import Heard, Scene, watcher_of


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def plane(shared_plane: ControlPlane) -> ControlPlane:
    """A control plane that serves our kinds."""
    async with Cluster.connect(shared_plane) as cluster:
        await install_crds(cluster)
    return shared_plane


@pytest_asyncio.fixture(loop_scope="session")
async def cluster(plane: ControlPlane) -> AsyncIterator[Cluster]:
    async with Cluster.connect(plane) as cluster:
        yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def proxy(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[ApiProxy]:
    async with ApiProxy.before(plane, tmp_path) as proxy:
        yield proxy


@pytest_asyncio.fixture(loop_scope="session")
async def kube(proxy: ApiProxy) -> AsyncIterator[KubeClient]:
    """What the code under test speaks to: the real API server, with whatever lies between."""
    async with KubeClient.connect(str(proxy.kubeconfig_path)) as kube:
        yield kube


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(cluster: Cluster) -> str:
    created = await cluster.create(NAMESPACES, {"metadata": {"generateName": "test-"}})
    return str(created["metadata"]["name"])  # type: ignore[index,call-overload]


@pytest_asyncio.fixture(loop_scope="session")
async def scene(kube: KubeClient, cluster: Cluster, namespace: str) -> AsyncIterator[Scene]:
    heard = Heard()
    async with watcher_of(kube, heard) as watcher:
        scene = Scene(watcher, heard, cluster, namespace)
        yield scene
        await cluster.delete(COMPOSITES, "", scene.name)
