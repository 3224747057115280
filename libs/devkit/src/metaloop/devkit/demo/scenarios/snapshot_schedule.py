"""Snapshot schedule: snapshots of claims are taken, kept for a while, and outlive their claim.

There is no storage here: the scenario plays the part of the snapshotter, and reports each snapshot as ready.
"""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun, snapshots_of
from metaloop.devkit.demo.snapshot import Objects
from metaloop.devkit.testbed.builtin import CLAIMS

_SCHEDULES = ResourceInfo(
    api_version="example.com/v1", resource="snapshotschedules", kind="SnapshotSchedule", namespaced=True, has_status=True
)
_SNAPSHOTS = ResourceInfo(
    api_version="snapshot.storage.k8s.io/v1", resource="volumesnapshots", kind="VolumeSnapshot", namespaced=True, has_status=True
)


async def _schedule(run: ScenarioRun[Objects]) -> None:
    run.output.begin("a schedule selects a claim: a snapshot every two seconds, each kept for seven")
    await run.apply("schedule.yaml")
    await run.until(lambda snapshot: len(_of(snapshot, "data")) >= 3)
    run.output.end("there are three snapshots")


async def _report_ready(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the scenario plays the snapshotter, and reports the snapshots as ready")
    for name in _of(await run.snapshot(), "data"):
        ready: JsonObject = {"status": {"readyToUse": True, "boundVolumeSnapshotContentName": f"content-of-{name}", "restoreSize": "1Gi"}}
        await run.cluster.patch(_SNAPSHOTS, run.namespace, name, ready, subresource="status")
    run.output.end("nothing is written to them: a schedule leaves its snapshots as they are")


async def _expire(run: ScenarioRun[Objects]) -> None:
    first = min(_of(await run.snapshot(), "data"))
    run.output.begin(f"{first} becomes older than seven seconds")
    await run.until(lambda snapshot: first not in _of(snapshot, "data") and len(_of(snapshot, "data")) >= 2)
    run.output.end("it is deleted, and newer ones are there")


async def _delete_claim(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the claim is deleted")
    kept = set(_of(await run.snapshot(), "data"))
    await run.change(CLAIMS, "data", {"metadata": {"finalizers": None}})  # the protection of claims that are in use
    await run.delete(CLAIMS, "data")
    await run.until(lambda snapshot: _inputs(run, snapshot) == 0 and kept & set(_of(snapshot, "data")))
    run.output.end("its snapshots stay, as the tombstone hook says")


async def _expire_all(run: ScenarioRun[Objects]) -> None:
    run.output.begin("time passes")
    await run.until(lambda snapshot: not _of(snapshot, "data"))
    run.output.end("the tombstone hook let them go, one after the other")


def _of(snapshot: Objects, claim: str) -> list[str]:
    """The names of the snapshots of a claim."""
    return sorted(
        unstructured.name(obj) for obj in snapshot.of("VolumeSnapshot").values() if unstructured.labels(obj).get("claim") == claim
    )


def _inputs(run: ScenarioRun[Objects], snapshot: Objects) -> object:
    """The number of claims in the status."""
    status = unstructured.child_object(snapshot.get("SnapshotSchedule", f"{run.namespace}/my-app-snapshots"), "status")
    return unstructured.child_object(unstructured.child_object(status, "inputs"), "persistentvolumeclaims").get("total")


SCENARIO = Scenario(
    about="snapshots of claims are taken, kept for a while, and outlive their claim",
    take_snapshot=snapshots_of(_SCHEDULES, CLAIMS, _SNAPSHOTS),
    steps=(_schedule, _report_ready, _expire, _delete_claim, _expire_all),
)
