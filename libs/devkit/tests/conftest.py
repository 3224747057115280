"""A cluster in memory, and a client of it, for the tests of this folder."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

sys.path.insert(0, str(Path(__file__).parent))

from memory_cluster import MemoryCluster

from metaloop.common.kube.client import KubeClient


@pytest_asyncio.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[MemoryCluster]:
    """A cluster that holds what a test puts into it."""
    async with MemoryCluster.serving(tmp_path) as cluster:
        yield cluster


@pytest_asyncio.fixture
async def kube(cluster: MemoryCluster) -> AsyncIterator[KubeClient]:
    async with KubeClient.connect(str(cluster.kubeconfig)) as kube:
        yield kube
