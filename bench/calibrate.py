"""Measures what one create costs the API server when nothing of ours runs: once a run, before its scenarios."""

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from bench.calibration import Calibration
from bench.load import in_parallel
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES, Cluster
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.workdir import run_folder

_NAMESPACE = "calibration"
_SAMPLES = 5
_CREATES_PER_SAMPLE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """One series of creates."""

    seconds: float
    cpu_seconds: float


async def calibrate(assets: Path) -> Calibration:
    """The median of five series of 2,000 creates, on a control plane of its own with the audit log of a scenario's."""
    with run_folder() as folder:
        async with (
            ControlPlane.start(assets, folder, audit_log=folder / "audit.log") as plane,
            Cluster.connect(plane) as cluster,
        ):
            await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
            await _sample(plane, cluster, "warm-up")
            samples = [await _sample(plane, cluster, f"sample-{index}") for index in range(_SAMPLES)]
    return Calibration(
        creates_per_second=_CREATES_PER_SAMPLE / statistics.median(sample.seconds for sample in samples),
        create_cpu_seconds=statistics.median(sample.cpu_seconds for sample in samples) / _CREATES_PER_SAMPLE,
    )


async def _sample(plane: ControlPlane, cluster: Cluster, prefix: str) -> _Sample:
    manifests = [config_map(f"{prefix}-{index}", data={"text": "x"}) for index in range(_CREATES_PER_SAMPLE)]
    cpu, start = _cpu_seconds(plane), time.monotonic()
    await in_parallel(cluster.create(CONFIG_MAPS, manifest, namespace=_NAMESPACE) for manifest in manifests)
    return _Sample(seconds=time.monotonic() - start, cpu_seconds=_cpu_seconds(plane) - cpu)


def _cpu_seconds(plane: ControlPlane) -> float:
    return plane.apiserver.cpu_seconds() + plane.etcd.cpu_seconds()
