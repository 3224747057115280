"""Secret propagation: labels of namespaces say which Secrets are shared, and with whom; nobody lists names."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.sight import Objects
from metaloop.devkit.demo.stage import Stage, Tale, seeing
from metaloop.devkit.testbed.builtin import SECRETS, named
from metaloop.devkit.testbed.cluster import NAMESPACES

_PROPAGATIONS = ResourceInfo(
    api_version="example.com/v1", resource="secretpropagations", kind="SecretPropagation", namespaced=False, has_status=True
)
_SHARED = "registry"


async def _share(stage: Stage[Objects]) -> None:
    stage.view.begin("a namespace shares one of its two Secrets with all namespaces labelled receives=registry: one of two")
    await stage.world.apply("propagation.yaml")
    await stage.until(lambda sight: _copies(sight).keys() == {"builds/registry"} and _counted(sight) == (1, 1, 1))
    stage.view.end("that one has the copy, and of the other Secret nobody knows")


async def _join(stage: Stage[Objects]) -> None:
    stage.view.begin("the namespace tests gets the label, and a new namespace is created with it")
    await stage.change(NAMESPACES, "tests", {"metadata": {"labels": {"receives": _SHARED}}}, namespace="")
    await stage.cluster.create(NAMESPACES, named(NAMESPACES, "releases", labels={"receives": _SHARED}))
    await stage.until(lambda sight: _copies(sight).keys() == {"builds/registry", "tests/registry", "releases/registry"})
    stage.view.end("both have their copies")


async def _rotate(stage: Stage[Objects]) -> None:
    stage.view.begin("the Secret is rotated")
    before = set(_copies(await stage.look(stage.world)).values())
    await stage.change(SECRETS, _SHARED, {"stringData": {"password": "battery staple"}}, namespace="vault")
    await stage.until(lambda sight: len(set(_copies(sight).values())) == 1 and before.isdisjoint(_copies(sight).values()))
    stage.view.end("all copies are")


async def _leave(stage: Stage[Objects]) -> None:
    stage.view.begin("builds loses its label")
    await stage.change(NAMESPACES, "builds", {"metadata": {"labels": {"receives": None}}}, namespace="")
    await stage.until(lambda sight: _copies(sight).keys() == {"tests/registry", "releases/registry"})
    stage.view.end("its copy is gone")


async def _withdraw(stage: Stage[Objects]) -> None:
    stage.view.begin("the namespace that shares loses its own label")
    await stage.change(NAMESPACES, "vault", {"metadata": {"labels": {"shares": None}}}, namespace="")
    await stage.until(lambda sight: not _copies(sight) and _counted(sight) == (0, 2, 0))
    stage.view.end("nothing is shared any more: a change of a namespace's labels is a change of what its Secrets are related to")


def _copies(sight: Objects) -> dict[str, str]:
    """The data of all copies."""
    return {key: str(_data(obj)) for key, obj in sight.of("Secret").items() if key.endswith(f"/{_SHARED}") and not key.startswith("vault/")}


def _data(secret: JsonObject) -> JsonObject:
    return unstructured.child_object(secret, "data")


def _counted(sight: Objects) -> tuple[object, object, object]:
    """The Secrets, namespaces and copies that the status counts."""
    status = unstructured.child_object(sight.get("SecretPropagation", "registry"), "status")
    return status.get("secrets"), status.get("namespaces"), status.get("copies")


TALE = Tale(
    about="labels of namespaces say which Secrets are shared, and with whom",
    look=seeing(_PROPAGATIONS, NAMESPACES, SECRETS),
    scenes=(_share, _join, _rotate, _leave, _withdraw),
)
