"""Cluster parent: a cluster-scoped Team has namespaces as its children, and children in these namespaces."""

from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.sight import Objects
from metaloop.devkit.demo.stage import Stage, Tale, seeing
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES

_TEAMS = ResourceInfo(api_version="example.com/v1", resource="teams", kind="Team", namespaced=False, has_status=True)
_QUOTAS = ResourceInfo(api_version="v1", resource="resourcequotas", kind="ResourceQuota", namespaced=True, has_status=True)


async def _found(stage: Stage[Objects]) -> None:
    stage.view.begin("a team is founded, with two environments")
    await stage.world.apply("team.yaml")
    await stage.until(lambda sight: _homes(sight) == {"comets-dev": ("ada, grace", "5"), "comets-prod": ("ada, grace", "5")})
    stage.view.end("each is a namespace with a quota, and a ConfigMap that names the members")


async def _grow(stage: Stage[Objects]) -> None:
    stage.view.begin("the team grows: a member, an environment, and Pods")
    team = {"environments": ["dev", "prod", "lab"], "members": ["ada", "grace", "edith"], "pods": 8}
    await stage.change(_TEAMS, "comets", {"spec": {**team}}, namespace="")
    wanted = {f"comets-{environment}": ("ada, grace, edith", "8") for environment in ("dev", "prod", "lab")}
    await stage.until(lambda sight: _homes(sight) == wanted)
    stage.view.end("all three environments know")


async def _close(stage: Stage[Objects]) -> None:
    stage.view.begin("the environment dev is closed")
    await stage.change(_TEAMS, "comets", {"spec": {"environments": ["prod", "lab"]}}, namespace="")
    await stage.until(lambda sight: set(_namespaces(sight)) == {"comets-prod", "comets-lab"})
    stage.view.end("its namespace is gone, with everything in it")


async def _disband(stage: Stage[Objects]) -> None:
    stage.view.begin("the team is disbanded (the garbage collector may take 40 s to notice so new a kind)")
    await stage.delete(_TEAMS, "comets", namespace="")
    await stage.until(lambda sight: not _namespaces(sight))
    stage.view.end("nothing is left of it")


def _namespaces(sight: Objects) -> list[str]:
    return [name for name in sight.of("Namespace") if name.startswith("comets-")]


def _homes(sight: Objects) -> dict[str, tuple[object, object]]:
    """The members and the quota of each environment that has both."""
    return {name: _home(sight, name) for name in _namespaces(sight)}


def _home(sight: Objects, namespace: str) -> tuple[object, object]:
    members = unstructured.child_object(sight.get("ConfigMap", f"{namespace}/team"), "data").get("members")
    spec = unstructured.child_object(sight.get("ResourceQuota", f"{namespace}/team"), "spec")
    return members, unstructured.child_object(spec, "hard").get("pods")


TALE = Tale(
    about="a cluster-scoped Team has namespaces as its children, and children in these namespaces",
    look=seeing(_TEAMS, NAMESPACES, _QUOTAS, CONFIG_MAPS),
    scenes=(_found, _grow, _close, _disband),
)
