"""A third kind of controller is served end to end by new files and one line in each registry."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from mirror_spec import MIRROR_KIND, PARENT_LABEL

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.broker import Broker
from metaloop.devkit.stack import Stack, StackOptions
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES, Cluster
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Platform, install, install_parent
from metaloop.devkit.testbed.manifests import crd
from metaloop.devkit.testbed.story import THINGS

_HERE = Path(__file__).parent
_PROGRAMS = {"watcher": [str(_HERE / "run_watcher.py")], "reconciler": [str(_HERE / "run_reconciler.py")]}
NAMESPACE = "mirrors"
SERVED: JsonObject = {"toys.metaloop.dev/served": "here"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(platform: Platform) -> AsyncIterator[Cluster]:
    """A cluster with two parents of a MirrorController, and services that know the kind.

    They have a broker of their own and serve nothing else: other services in this cluster don't know the kind.
    """
    cluster = platform.cluster
    await install_parent(cluster, THINGS)
    await install(cluster, crd(MIRROR_KIND.resource))
    await cluster.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    parent: JsonObject = {"apiVersion": THINGS.api_version, "resource": THINGS.resource}
    await cluster.create(
        MIRROR_KIND.resource,
        {**kind_of(MIRROR_KIND.resource), "metadata": {"name": "mirrors", "labels": SERVED}, "spec": {"parentResource": parent}},
    )
    for name in ("one", "two"):
        await cluster.create(THINGS, thing(name), namespace=NAMESPACE)
    workdir = platform.workdir / "toykind"
    workdir.mkdir()
    async with Broker.start(workdir) as broker:
        options = StackOptions(
            kubeconfig=platform.plane.kubeconfig_path,
            nats_url=broker.url,
            programs=_PROGRAMS,
            settings={"TARGET_LABEL_SELECTOR": ",".join(f"{key}={value}" for key, value in SERVED.items())},
        )
        async with Stack.start(options, workdir):
            yield cluster
            await cluster.delete(MIRROR_KIND.resource, "", "mirrors")


def kind_of(resource: ResourceInfo) -> JsonObject:
    """What says of which kind an object is."""
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def thing(name: str) -> JsonObject:
    """A parent."""
    return {**kind_of(THINGS), "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {}}


def source(name: str, *, parent: str, text: str) -> JsonObject:
    """A ConfigMap that is to be mirrored for a parent."""
    return {"metadata": {"name": name, "namespace": NAMESPACE, "labels": {PARENT_LABEL: parent}}, "data": {"text": text}}


async def mirror_says(cluster: Cluster, name: str, text: str) -> None:
    """Return once the mirror of a source says this."""

    async def look() -> None:
        mirror = await cluster.find(CONFIG_MAPS, NAMESPACE, f"{name}-mirror")
        expect(mirror is not None and mirror.get("data") == {"text": text}, f"the mirror of {name} is {mirror}")

    await eventually(look, within_seconds=30)


async def test_each_source_has_a_mirror_that_its_parent_controls(cluster: Cluster):
    await cluster.create(CONFIG_MAPS, source("a", parent="one", text="first"), namespace=NAMESPACE)
    await cluster.create(CONFIG_MAPS, source("b", parent="two", text="second"), namespace=NAMESPACE)

    await mirror_says(cluster, "a", "first")
    await mirror_says(cluster, "b", "second")

    mirror = await cluster.get(CONFIG_MAPS, NAMESPACE, "a-mirror")
    references = unstructured.metadata(mirror)["ownerReferences"]
    assert isinstance(references, list)
    assert [reference["name"] for reference in references if isinstance(reference, dict)] == ["one"]


async def test_mirror_follows_its_source(cluster: Cluster):
    await cluster.create(CONFIG_MAPS, source("c", parent="one", text="before"), namespace=NAMESPACE)
    await mirror_says(cluster, "c", "before")

    await cluster.patch(CONFIG_MAPS, NAMESPACE, "c", {"data": {"text": "after"}})

    await mirror_says(cluster, "c", "after")


async def test_mirror_that_drifted_or_was_deleted_comes_back(cluster: Cluster):
    await cluster.create(CONFIG_MAPS, source("d", parent="one", text="right"), namespace=NAMESPACE)
    await mirror_says(cluster, "d", "right")

    await cluster.patch(CONFIG_MAPS, NAMESPACE, "d-mirror", {"data": {"text": "wrong"}})
    await mirror_says(cluster, "d", "right")
    await cluster.delete(CONFIG_MAPS, NAMESPACE, "d-mirror")

    await mirror_says(cluster, "d", "right")


async def test_mirror_goes_with_its_source(cluster: Cluster):
    await cluster.create(CONFIG_MAPS, source("e", parent="one", text="short"), namespace=NAMESPACE)
    await mirror_says(cluster, "e", "short")

    await cluster.delete(CONFIG_MAPS, NAMESPACE, "e")

    async def is_gone() -> None:
        expect(await cluster.find(CONFIG_MAPS, NAMESPACE, "e-mirror") is None, "the mirror is still there")

    await eventually(is_gone, within_seconds=30)


async def test_parent_that_comes_later_mirrors_what_names_it(cluster: Cluster):
    await cluster.create(CONFIG_MAPS, source("f", parent="late", text="waiting"), namespace=NAMESPACE)
    await mirror_says(cluster, "a", "first")
    assert await cluster.find(CONFIG_MAPS, NAMESPACE, "f-mirror") is None

    await cluster.create(THINGS, thing("late"), namespace=NAMESPACE)

    await mirror_says(cluster, "f", "waiting")


@pytest.mark.parametrize("name", ["g0", "g1", "g2"])
async def test_parts_of_one_parent_are_units_of_work_of_their_own(cluster: Cluster, name: str):
    await cluster.create(CONFIG_MAPS, source(name, parent="two", text=name), namespace=NAMESPACE)

    await mirror_says(cluster, name, name)
