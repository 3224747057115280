"""ConfigMap propagation: a ConfigMap is copied into the listed namespaces, and each copy follows its source."""

from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun, snapshots_of
from metaloop.devkit.demo.snapshot import Objects
from metaloop.devkit.testbed.builtin import named
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES

_PROPAGATIONS = ResourceInfo(
    api_version="example.com/v1", resource="configmappropagations", kind="ConfigMapPropagation", namespaced=False, has_status=True
)


async def _propagate(run: ScenarioRun[Objects]) -> None:
    run.output.begin("a ConfigMap is to be copied into three namespaces, one of which does not exist yet")
    await run.apply("propagation.yaml")
    await run.until(lambda snapshot: _texts(snapshot) == dict.fromkeys(("team-a", "team-b"), "festina lente") and _copies(snapshot) == 2)
    run.output.end("two namespaces have a copy, and the status says that three are wanted")


async def _add_namespace(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the namespace team-c is created")
    await run.cluster.create(NAMESPACES, named(NAMESPACES, "team-c"))
    await run.until(
        lambda snapshot: _texts(snapshot) == dict.fromkeys(("team-a", "team-b", "team-c"), "festina lente") and _copies(snapshot) == 3
    )
    run.output.end("it gets its copy at once, because the namespaces are related objects too")


async def _edit(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the source is changed, and a copy is changed by hand")
    await run.change(CONFIG_MAPS, "motto", {"data": {"text": "carpe diem"}}, namespace="config")
    await run.change(CONFIG_MAPS, "motto", {"data": {"text": "mine"}}, namespace="team-b")
    await run.until(lambda snapshot: _texts(snapshot) == dict.fromkeys(("team-a", "team-b", "team-c"), "carpe diem"))
    run.output.end("all copies are equal to the source again")


async def _retarget(run: ScenarioRun[Objects]) -> None:
    run.output.begin("team-b is removed from the list")
    await run.change(_PROPAGATIONS, "motto", {"spec": {"targets": ["team-a", "team-c"]}}, namespace="")
    await run.until(lambda snapshot: _texts(snapshot) == dict.fromkeys(("team-a", "team-c"), "carpe diem") and _copies(snapshot) == 2)
    run.output.end("its copy is deleted")


async def _delete_source(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the source is deleted")
    await run.delete(CONFIG_MAPS, "motto", namespace="config")
    await run.until(lambda snapshot: not _texts(snapshot) and _copies(snapshot) == 0)
    run.output.end("the copies are deleted too, and the status says that there is no source")


def _texts(snapshot: Objects) -> dict[str, object]:
    """The text of each copy, by namespace."""
    found = {key.partition("/"): unstructured.child_object(obj, "data").get("text") for key, obj in snapshot.of("ConfigMap").items()}
    return {namespace: text for (namespace, _, name), text in found.items() if name == "motto" and namespace != "config"}


def _copies(snapshot: Objects) -> object:
    """The number of copies in the status."""
    return unstructured.child_object(snapshot.get("ConfigMapPropagation", "motto"), "status").get("copies")


SCENARIO = Scenario(
    about="a ConfigMap is copied into the listed namespaces, and each copy follows its source",
    take_snapshot=snapshots_of(_PROPAGATIONS, CONFIG_MAPS),
    steps=(_propagate, _add_namespace, _edit, _retarget, _delete_source),
)
