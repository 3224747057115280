"""Global ConfigMap: every namespace of the cluster has a copy, those to come included."""

from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.sight import Objects
from metaloop.devkit.demo.stage import Stage, Tale, seeing
from metaloop.devkit.testbed.builtin import named
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES

_GLOBALS = ResourceInfo(
    api_version="example.com/v1", resource="globalconfigmaps", kind="GlobalConfigMap", namespaced=False, has_status=True
)


async def _spread(stage: Stage[Objects]) -> None:
    stage.view.begin("a ConfigMap is to be in every namespace")
    await stage.world.apply("global.yaml")
    sight = await stage.until(lambda sight: _is_everywhere(sight, "sunny"))
    stage.view.end(f"it is in {len(_copies(sight))} of them, besides its own and Kubernetes' own")


async def _grow(stage: Stage[Objects]) -> None:
    stage.view.begin("five namespaces are created")
    for name in _planets():
        await stage.cluster.create(NAMESPACES, named(NAMESPACES, name))
    await stage.until(lambda sight: _planets() <= _copies(sight).keys() and _is_everywhere(sight, "sunny"))
    stage.view.end("each has its copy")


async def _edit(stage: Stage[Objects]) -> None:
    stage.view.begin("the weather changes, and somebody deletes the copy in mars")
    await stage.change(CONFIG_MAPS, "weather", {"data": {"today": "rain"}}, namespace="global")
    await stage.delete(CONFIG_MAPS, "weather", namespace="mars")
    await stage.until(lambda sight: _is_everywhere(sight, "rain"))
    stage.view.end("every namespace knows")


async def _shrink(stage: Stage[Objects]) -> None:
    stage.view.begin("the namespace venus is deleted")
    await stage.delete(NAMESPACES, "venus", namespace="")
    await stage.until(lambda sight: "venus" not in sight.of("Namespace") and _is_everywhere(sight, "rain"))
    stage.view.end("it goes undisturbed: nothing is created where everything is about to go")


def _planets() -> set[str]:
    return {"mercury", "venus", "mars", "jupiter", "saturn"}


def _copies(sight: Objects) -> dict[str, object]:
    """What each copy says, by namespace."""
    found = {key.partition("/"): obj for key, obj in sight.of("ConfigMap").items()}
    copies = {space: obj for (space, _, name), obj in found.items() if name == "weather" and space != "global"}
    return {space: unstructured.child_object(obj, "data").get("today") for space, obj in copies.items()}


def _is_everywhere(sight: Objects, today: str) -> bool:
    """Whether all namespaces that are to stay have a copy that is right."""
    staying = {name for name, namespace in sight.of("Namespace").items() if not unstructured.is_deleting(namespace)}
    return dict.fromkeys(staying - {"global"}, today).items() <= _copies(sight).items()


TALE = Tale(
    about="every namespace of the cluster has a copy of a ConfigMap, those to come included",
    look=seeing(_GLOBALS, NAMESPACES, CONFIG_MAPS),
    scenes=(_spread, _grow, _edit, _shrink),
)
