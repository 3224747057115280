"""A real control plane for the tests in this folder, and a namespace for each test."""

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

sys.path.insert(0, str(Path(__file__).parent))

from scripted_server import ScriptedServer, kubeconfig_bytes, scripted_server

from metaloop.common.kube.client import KubeClient
from metaloop.common.objects.unstructured import name
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.cluster import NAMESPACES


@pytest.fixture(scope="session")
def plane(shared_plane: ControlPlane) -> ControlPlane:
    return shared_plane


@pytest_asyncio.fixture
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with KubeClient.connect(str(plane.kubeconfig_path)) as kube:
        yield kube


@pytest_asyncio.fixture
async def namespace(kube: KubeClient) -> str:
    created = await kube.create(NAMESPACES, {"metadata": {"generateName": "test-"}})
    return name(created)


@pytest_asyncio.fixture
async def scripted(tmp_path: Path) -> AsyncIterator[ScriptedServer]:
    async with scripted_server(tmp_path) as server:
        yield server


@pytest.fixture
def write_kubeconfig(tmp_path: Path) -> Callable[[dict[str, object], dict[str, object]], str]:
    def write(cluster: dict[str, object], user: dict[str, object]) -> str:
        path = tmp_path / "kubeconfig"
        path.write_bytes(kubeconfig_bytes(cluster, user))
        return str(path)

    return write
