"""Web application: waves that wait for each other, Jobs before and after, repair, and removal in order.

There is no kubelet here: the scenario plays its part in the namespace of the app, and reports Pods as ready or done.
"""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.kubelet import Kubelet
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun, snapshots_of
from metaloop.devkit.demo.snapshot import Objects
from metaloop.devkit.errors import DevkitError
from metaloop.devkit.testbed.builtin import DEPLOYMENTS, JOBS, SERVICES
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES

_WEBAPPS = ResourceInfo(api_version="example.com/v1", resource="webapps", kind="WebApp", namespaced=True, has_status=True)
_APP = "shop"


async def _start(run: ScenarioRun[Objects]) -> None:
    run.output.begin("a WebApp is created: configuration first, then a migration")
    await run.apply("webapp.yaml")
    snapshot = await run.until(lambda snapshot: snapshot.get("Job", f"{_space(run)}/migrate"))
    if _objects(run, snapshot, "Deployment"):
        raise DevkitError("the servers are there before the migration is over")
    run.output.end("the migration runs, and there are no servers yet")


async def _become_ready(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the scenario plays the kubelet: the migration succeeds, and servers become ready")
    async with _kubelet(run).running():
        await run.until(lambda snapshot: _state(run, snapshot) == "Ready" and not _objects(run, snapshot, "Job"))
    run.output.end("the servers were rolled out after the migration, and were checked; both Jobs are gone again")


async def _upgrade(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the version changes")
    await run.change(_WEBAPPS, _APP, {"spec": {"version": "2"}})
    async with _kubelet(run).running():
        await run.until(
            lambda snapshot: _revision(run, snapshot) == 2 and _state(run, snapshot) == "Ready" and not _objects(run, snapshot, "Job")
        )
    settings = await run.cluster.get(CONFIG_MAPS, _space(run), "settings")
    run.output.end(f"it was migrated, rolled out and checked again; the settings say {settings['data']}")


async def _repair(run: ScenarioRun[Objects]) -> None:
    run.output.begin("somebody deletes the Service")
    before = unstructured.uid(await run.cluster.get(SERVICES, _space(run), _APP))
    await run.delete(SERVICES, _APP, namespace=_space(run))
    await run.until(lambda snapshot: unstructured.uid(snapshot.get("Service", f"{_space(run)}/{_APP}")) not in {"", before})
    run.output.end("it is created again")


async def _remove(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the WebApp is deleted")
    await run.delete(_WEBAPPS, _APP)
    await run.until(lambda snapshot: not snapshot.of("WebApp"))
    if _space(run) in [unstructured.name(each) for each in await run.cluster.list(NAMESPACES, "")]:
        raise DevkitError("the WebApp is gone before its namespace")
    run.output.end("everything of it is gone, its namespace last")


def _space(run: ScenarioRun[Objects]) -> str:
    """The namespace of the app's objects."""
    return f"{run.namespace}-{_APP}"


def _objects(run: ScenarioRun[Objects], snapshot: Objects, kind: str) -> list[str]:
    """The app's objects of a kind. The cluster may hold others."""
    return [key for key in snapshot.of(kind) if key.startswith(f"{_space(run)}/")]


def _kubelet(run: ScenarioRun[Objects]) -> Kubelet:
    return Kubelet(cluster=run.cluster, namespace=_space(run))


def _status(run: ScenarioRun[Objects], snapshot: Objects) -> JsonObject:
    return unstructured.child_object(snapshot.get("WebApp", f"{run.namespace}/{_APP}"), "status")


def _state(run: ScenarioRun[Objects], snapshot: Objects) -> str:
    return unstructured.text(_status(run, snapshot), "state")


def _revision(run: ScenarioRun[Objects], snapshot: Objects) -> int:
    return unstructured.integer(_status(run, snapshot), "revision")


SCENARIO = Scenario(
    about="waves that wait for each other, Jobs before and after, repair, and removal in order",
    take_snapshot=snapshots_of(_WEBAPPS, JOBS, DEPLOYMENTS, SERVICES),
    steps=(_start, _become_ready, _upgrade, _repair, _remove),
)
