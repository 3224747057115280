"""Secret propagation: labels of namespaces say which Secrets are copied, and where to; no names are listed."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun, snapshots_of
from metaloop.devkit.demo.snapshot import Objects
from metaloop.devkit.testbed.builtin import SECRETS, named
from metaloop.devkit.testbed.cluster import NAMESPACES

_PROPAGATIONS = ResourceInfo(
    api_version="example.com/v1", resource="secretpropagations", kind="SecretPropagation", namespaced=False, has_status=True
)
_SHARED = "registry"


async def _share(run: ScenarioRun[Objects]) -> None:
    run.output.begin("one of the two Secrets of a namespace is copied into all namespaces with the label receives=registry")
    await run.apply("propagation.yaml")
    await run.until(lambda snapshot: _copies(snapshot).keys() == {"builds/registry"} and _counted(snapshot) == (1, 1, 1))
    run.output.end("the one namespace with the label has a copy; the other Secret is not copied")


async def _join(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the namespace tests gets the label, and a new namespace with the label is created")
    await run.change(NAMESPACES, "tests", {"metadata": {"labels": {"receives": _SHARED}}}, namespace="")
    await run.cluster.create(NAMESPACES, named(NAMESPACES, "releases", labels={"receives": _SHARED}))
    await run.until(lambda snapshot: _copies(snapshot).keys() == {"builds/registry", "tests/registry", "releases/registry"})
    run.output.end("both have a copy")


async def _rotate(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the Secret is changed")
    before = set(_copies(await run.snapshot()).values())
    await run.change(SECRETS, _SHARED, {"stringData": {"password": "battery staple"}}, namespace="vault")
    await run.until(lambda snapshot: len(set(_copies(snapshot).values())) == 1 and before.isdisjoint(_copies(snapshot).values()))
    run.output.end("all copies are changed")


async def _leave(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the label is removed from builds")
    await run.change(NAMESPACES, "builds", {"metadata": {"labels": {"receives": None}}}, namespace="")
    await run.until(lambda snapshot: _copies(snapshot).keys() == {"tests/registry", "releases/registry"})
    run.output.end("its copy is deleted")


async def _withdraw(run: ScenarioRun[Objects]) -> None:
    run.output.begin("the label of the source namespace is removed")
    await run.change(NAMESPACES, "vault", {"metadata": {"labels": {"shares": None}}}, namespace="")
    await run.until(lambda snapshot: not _copies(snapshot) and _counted(snapshot) == (0, 2, 0))
    run.output.end("all copies are deleted, because the rule no longer selects the source namespace")


def _copies(snapshot: Objects) -> dict[str, str]:
    """The data of all copies."""
    return {
        key: str(_data(obj)) for key, obj in snapshot.of("Secret").items() if key.endswith(f"/{_SHARED}") and not key.startswith("vault/")
    }


def _data(secret: JsonObject) -> JsonObject:
    return unstructured.child_object(secret, "data")


def _counted(snapshot: Objects) -> tuple[object, object, object]:
    """The number of Secrets, namespaces and copies in the status."""
    status = unstructured.child_object(snapshot.get("SecretPropagation", "registry"), "status")
    return status.get("secrets"), status.get("namespaces"), status.get("copies")


SCENARIO = Scenario(
    about="labels of namespaces say which Secrets are copied, and where to",
    take_snapshot=snapshots_of(_PROPAGATIONS, NAMESPACES, SECRETS),
    steps=(_share, _join, _rotate, _leave, _withdraw),
)
