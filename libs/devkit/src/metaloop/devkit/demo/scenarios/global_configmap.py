"""Global ConfigMap: every namespace of the cluster has a copy, including new ones."""

from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun, snapshots_of
from metaloop.devkit.demo.snapshot import Objects
from metaloop.devkit.testbed.builtin import named
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES

_GLOBALS = ResourceInfo(
    api_version="example.com/v1", resource="globalconfigmaps", kind="GlobalConfigMap", namespaced=False, has_status=True
)


async def _spread(run: ScenarioRun[Objects]) -> None:
    run.output.begin("a ConfigMap is to be copied into every namespace")
    await run.apply("global.yaml")
    snapshot = await run.until(lambda snapshot: _is_everywhere(snapshot, "sunny"))
    run.output.end(f"{len(_copies(snapshot))} namespaces have a copy: all but that of the source and those of Kubernetes")


async def _grow(run: ScenarioRun[Objects]) -> None:
    run.output.begin("five namespaces are created")
    for name in _planets():
        await run.cluster.create(NAMESPACES, named(NAMESPACES, name))
    await run.until(lambda snapshot: _planets() <= _copies(snapshot).keys() and _is_everywhere(snapshot, "sunny"))
    run.output.end("each gets a copy")


async def _edit(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the source is changed, and the copy in mars is deleted by hand")
    await run.change(CONFIG_MAPS, "weather", {"data": {"today": "rain"}}, namespace="global")
    await run.delete(CONFIG_MAPS, "weather", namespace="mars")
    await run.until(lambda snapshot: _is_everywhere(snapshot, "rain"))
    run.output.end("every namespace has the new data")


async def _shrink(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the namespace venus is deleted")
    await run.delete(NAMESPACES, "venus", namespace="")
    await run.until(lambda snapshot: "venus" not in snapshot.of("Namespace") and _is_everywhere(snapshot, "rain"))
    run.output.end("nothing is created in it while it is being deleted")


def _planets() -> set[str]:
    return {"mercury", "venus", "mars", "jupiter", "saturn"}


def _copies(snapshot: Objects) -> dict[str, object]:
    """The data of each copy, by namespace."""
    found = {key.partition("/"): obj for key, obj in snapshot.of("ConfigMap").items()}
    copies = {space: obj for (space, _, name), obj in found.items() if name == "weather" and space != "global"}
    return {space: unstructured.child_object(obj, "data").get("today") for space, obj in copies.items()}


def _is_everywhere(snapshot: Objects, today: str) -> bool:
    """Whether all namespaces that are not being deleted have a copy with this data."""
    staying = {name for name, namespace in snapshot.of("Namespace").items() if not unstructured.is_deleting(namespace)}
    return dict.fromkeys(staying - {"global"}, today).items() <= _copies(snapshot).items()


SCENARIO = Scenario(
    about="every namespace of the cluster has a copy of a ConfigMap, including new ones",
    take_snapshot=snapshots_of(_GLOBALS, NAMESPACES, CONFIG_MAPS),
    steps=(_spread, _grow, _edit, _shrink),
)
