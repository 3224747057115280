"""Cluster parent: a cluster-scoped Team has namespaces as its children, and children in these namespaces."""

from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun, snapshots_of
from metaloop.devkit.demo.snapshot import Objects
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES

_TEAMS = ResourceInfo(api_version="example.com/v1", resource="teams", kind="Team", namespaced=False, has_status=True)
_QUOTAS = ResourceInfo(api_version="v1", resource="resourcequotas", kind="ResourceQuota", namespaced=True, has_status=True)


async def _create(run: ScenarioRun[Objects]) -> None:
    run.output.begin("a Team with two environments is created")
    await run.apply("team.yaml")
    await run.until(lambda snapshot: _environments(snapshot) == {"comets-dev": ("ada, grace", "5"), "comets-prod": ("ada, grace", "5")})
    run.output.end("each environment is a namespace with a quota and a ConfigMap of the members")


async def _grow(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the team gets another member, another environment, and more Pods")
    team = {"environments": ["dev", "prod", "lab"], "members": ["ada", "grace", "edith"], "pods": 8}
    await run.change(_TEAMS, "comets", {"spec": {**team}}, namespace="")
    wanted = {f"comets-{environment}": ("ada, grace, edith", "8") for environment in ("dev", "prod", "lab")}
    await run.until(lambda snapshot: _environments(snapshot) == wanted)
    run.output.end("all three environments are updated")


async def _remove_environment(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the environment dev is removed")
    await run.change(_TEAMS, "comets", {"spec": {"environments": ["prod", "lab"]}}, namespace="")
    await run.until(lambda snapshot: set(_namespaces(snapshot)) == {"comets-prod", "comets-lab"})
    run.output.end("its namespace is deleted, with everything in it")


async def _delete(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the Team is deleted")
    await run.delete(_TEAMS, "comets", namespace="")
    await run.until(lambda snapshot: not _namespaces(snapshot))
    run.output.end("all of its namespaces are deleted")


def _namespaces(snapshot: Objects) -> list[str]:
    return [name for name in snapshot.of("Namespace") if name.startswith("comets-")]


def _environments(snapshot: Objects) -> dict[str, tuple[object, object]]:
    """The members and the quota of each environment, by namespace."""
    return {name: _environment(snapshot, name) for name in _namespaces(snapshot)}


def _environment(snapshot: Objects, namespace: str) -> tuple[object, object]:
    members = unstructured.child_object(snapshot.get("ConfigMap", f"{namespace}/team"), "data").get("members")
    spec = unstructured.child_object(snapshot.get("ResourceQuota", f"{namespace}/team"), "spec")
    return members, unstructured.child_object(spec, "hard").get("pods")


SCENARIO = Scenario(
    about="a cluster-scoped Team has namespaces as its children, and children in these namespaces",
    take_snapshot=snapshots_of(_TEAMS, NAMESPACES, _QUOTAS, CONFIG_MAPS),
    steps=(_create, _grow, _remove_environment, _delete),
)
