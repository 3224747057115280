"""A cluster that was restored from a backup: its versions begin anew from an earlier one, and a watch from a later one
would be told nothing.
"""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from metaloop.common.kube.client import KubeClient
from metaloop.devkit.assets import ensure
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.apiproxy import ApiProxy
from metaloop.devkit.testbed.cluster import Cluster
from metaloop.devkit.workdir import run_folder

from .test_reflector_faults import change, put, watching

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

_NAMESPACE = "default"
_CHANGES = 200
"""More than what happens in the cluster by itself meanwhile."""


@asynccontextmanager
async def standing_still(plane: ControlPlane) -> AsyncIterator[None]:
    """Nobody reads or writes the store for the length of the block."""
    await plane.apiserver.kill()
    await plane.etcd.stop()
    yield
    await plane.etcd.start()
    await plane.apiserver.start()


async def test_a_restored_cluster_is_seen_as_it_is(tmp_path: Path):
    with run_folder() as folder:
        async with (
            ControlPlane.start(await ensure(), folder) as plane,
            ApiProxy.before(plane, tmp_path) as proxy,
            KubeClient.connect(str(proxy.kubeconfig_path)) as kube,
            watching(kube, proxy, _NAMESPACE) as watched,
        ):
            store, backup = plane.kubeconfig_path.parent / "data", tmp_path / "backup"
            async with Cluster.connect(plane) as cluster:
                await put(cluster, _NAMESPACE, "kept", "before")
            async with standing_still(plane):
                shutil.copytree(store, backup)
            async with Cluster.connect(plane) as cluster:
                await put(cluster, _NAMESPACE, "lost", "before")
                for number in range(_CHANGES):
                    await change(cluster, _NAMESPACE, "kept", str(number))
                await watched.until({"kept": str(_CHANGES - 1), "lost": "before"})

            async with standing_still(plane):
                shutil.rmtree(store)
                shutil.copytree(backup, store)
            async with Cluster.connect(plane) as cluster:
                await put(cluster, _NAMESPACE, "new", "after")

            await watched.until({"kept": "before", "new": "after"})
