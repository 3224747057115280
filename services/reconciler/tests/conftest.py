"""Makes the builders and fakes in this folder importable, and provides a real API server to tests that ask for it."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic

import pytest_asyncio

sys.path.insert(0, str(Path(__file__).parent))

from builders import THINGS
from known_schemas import running

from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.cluster import NAMESPACES, Cluster
from metaloop.devkit.testbed.lab import install_parent
from metaloop.reconciler.schemas import Schemas


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def plane(shared_plane: ControlPlane) -> ControlPlane:
    """A control plane that serves Things."""
    async with Cluster.connect(shared_plane) as cluster:
        await install_parent(cluster, THINGS)
    return shared_plane


@pytest_asyncio.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with KubeClient.connect(str(plane.kubeconfig_path)) as kube:
        yield kube


@pytest_asyncio.fixture
async def namespace(kube: KubeClient) -> str:
    """A namespace of its own."""
    return unstructured.name(await kube.create(NAMESPACES, {"metadata": {"generateName": "test-"}}))


@pytest_asyncio.fixture
async def schemas(kube: KubeClient) -> AsyncIterator[Schemas]:
    """The schemas of the API server's kinds."""
    async with running(kube, monotonic) as schemas:
        yield schemas


@pytest_asyncio.fixture
async def parent(kube: KubeClient, namespace: str) -> JsonObject:
    """A parent that exists. The garbage collector would sooner or later delete the children of one that does not."""
    return await kube.create(
        THINGS, {"apiVersion": THINGS.api_version, "kind": THINGS.kind, "metadata": {"name": "p", "namespace": namespace}}
    )
