"""ConfigMap propagation: copies follow their source into the namespaces that are listed, whichever comes first."""

from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.sight import Objects
from metaloop.devkit.demo.stage import Stage, Tale, seeing
from metaloop.devkit.testbed.builtin import named
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES

_PROPAGATIONS = ResourceInfo(
    api_version="example.com/v1", resource="configmappropagations", kind="ConfigMapPropagation", namespaced=False, has_status=True
)


async def _propagate(stage: Stage[Objects]) -> None:
    stage.view.begin("a ConfigMap is to be copied into three namespaces, of which one does not exist yet")
    await stage.world.apply("propagation.yaml")
    await stage.until(lambda sight: _texts(sight) == dict.fromkeys(("team-a", "team-b"), "festina lente") and _copies(sight) == 2)
    stage.view.end("two have their copies, and the status says that three are wanted")


async def _arrive(stage: Stage[Objects]) -> None:
    stage.view.begin("the namespace team-c is created")
    await stage.cluster.create(NAMESPACES, named(NAMESPACES, "team-c"))
    await stage.until(lambda sight: _texts(sight) == dict.fromkeys(("team-a", "team-b", "team-c"), "festina lente") and _copies(sight) == 3)
    stage.view.end("its copy is there at once: the namespaces are related objects too")


async def _edit(stage: Stage[Objects]) -> None:
    stage.view.begin("the source is edited, and somebody edits a copy by hand")
    await stage.change(CONFIG_MAPS, "motto", {"data": {"text": "carpe diem"}}, namespace="config")
    await stage.change(CONFIG_MAPS, "motto", {"data": {"text": "mine"}}, namespace="team-b")
    await stage.until(lambda sight: _texts(sight) == dict.fromkeys(("team-a", "team-b", "team-c"), "carpe diem"))
    stage.view.end("all copies say what the source says")


async def _retarget(stage: Stage[Objects]) -> None:
    stage.view.begin("team-b is taken off the list")
    await stage.change(_PROPAGATIONS, "motto", {"spec": {"targets": ["team-a", "team-c"]}}, namespace="")
    await stage.until(lambda sight: _texts(sight) == dict.fromkeys(("team-a", "team-c"), "carpe diem") and _copies(sight) == 2)
    stage.view.end("its copy is gone")


async def _lose(stage: Stage[Objects]) -> None:
    stage.view.begin("the source is deleted")
    await stage.delete(CONFIG_MAPS, "motto", namespace="config")
    await stage.until(lambda sight: not _texts(sight) and _copies(sight) == 0)
    stage.view.end("so are the copies, and the status says that there is no source")


def _texts(sight: Objects) -> dict[str, object]:
    """What each copy says, by namespace."""
    found = {key.partition("/"): unstructured.child_object(obj, "data").get("text") for key, obj in sight.of("ConfigMap").items()}
    return {namespace: text for (namespace, _, name), text in found.items() if name == "motto" and namespace != "config"}


def _copies(sight: Objects) -> object:
    """How many copies the status counts."""
    return unstructured.child_object(sight.get("ConfigMapPropagation", "motto"), "status").get("copies")


TALE = Tale(
    about="copies of a ConfigMap follow their source into the namespaces that are listed, whichever comes first",
    look=seeing(_PROPAGATIONS, CONFIG_MAPS),
    scenes=(_propagate, _arrive, _edit, _retarget, _lose),
)
