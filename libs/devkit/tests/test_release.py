"""`metaloop release-finalizers`: whose finalizers are removed, from which objects, and what is said of it."""

import pytest
from memory_cluster import COMPOSITES, CONFIG_MAPS, NODES, THINGS, MemoryCluster

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.cli.release import release
from metaloop.devkit.errors import ControllerExists, DevkitError, NothingToPlan

OURS, THEIRS = "metacontroller.io/compositecontroller-gone", "example.com/theirs"


def held(cluster: MemoryCluster, info: ResourceInfo, name: str, *finalizers: str) -> JsonObject:
    """A stored object that has these finalizers."""
    metadata: JsonObject = {"name": name, "finalizers": [*finalizers]}
    if info.namespaced:
        metadata["namespace"] = "default"
    return cluster.put(info, {"metadata": metadata})


async def run(
    cluster: MemoryCluster, controller: str = "cc/gone", *, resource: str = "", finalizer: str = "", dry_run: bool = False
) -> None:
    """The command."""
    await release(controller, kubeconfig=str(cluster.kubeconfig), resource=resource, finalizer=finalizer, dry_run=dry_run)


async def test_finalizer_of_the_controller_is_removed_and_others_stay(cluster: MemoryCluster) -> None:
    thing = held(cluster, THINGS, "p", THEIRS, OURS)

    await run(cluster)

    assert unstructured.finalizers(thing) == [THEIRS]


async def test_objects_are_found_in_every_resource(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    held(cluster, THINGS, "p", OURS)
    held(cluster, NODES, "n", OURS)
    held(cluster, CONFIG_MAPS, "free", THEIRS)

    await run(cluster)

    told = capsys.readouterr()
    assert sorted(told.out.splitlines()) == ["nodes n", "things default/p"]
    assert "2 objects had the finalizer metacontroller.io/compositecontroller-gone" in told.err


@pytest.mark.parametrize("resource", ["things", "things.example.com"])
async def test_one_resource_may_be_named(cluster: MemoryCluster, resource: str) -> None:
    thing, node = held(cluster, THINGS, "p", OURS), held(cluster, NODES, "n", OURS)

    await run(cluster, resource=resource)

    assert (unstructured.finalizers(thing), unstructured.finalizers(node)) == ([], [OURS])


async def test_dry_run_names_the_objects_and_writes_nothing(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    thing = held(cluster, THINGS, "p", OURS)

    await run(cluster, dry_run=True)

    assert unstructured.finalizers(thing) == [OURS]
    assert {each.split()[0] for each in cluster.asked} == {"GET"}
    told = capsys.readouterr()
    assert told.out == "things default/p\n"
    assert "1 objects have the finalizer" in told.err


async def test_every_page_of_a_list_is_looked_at(cluster: MemoryCluster) -> None:
    cluster.page_size = 2
    things = [held(cluster, THINGS, f"p{number}", OURS) for number in range(5)]

    await run(cluster)

    assert [unstructured.finalizers(thing) for thing in things] == [[]] * 5


async def test_controller_that_still_exists_keeps_its_finalizers(cluster: MemoryCluster) -> None:
    cluster.composite("gone")
    thing = held(cluster, THINGS, "p", OURS)

    with pytest.raises(ControllerExists, match="CompositeController gone still exists"):
        await run(cluster)

    assert unstructured.finalizers(thing) == [OURS]


async def test_controller_that_is_being_deleted_may_be_released_from(cluster: MemoryCluster) -> None:
    unstructured.metadata(cluster.composite("gone"))["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    thing = held(cluster, THINGS, "p", OURS)

    await run(cluster)

    assert unstructured.finalizers(thing) == []


async def test_live_controller_may_be_asked_about(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.composite("gone")
    held(cluster, THINGS, "p", OURS)

    await run(cluster, dry_run=True)

    assert capsys.readouterr().out == "things default/p\n"


async def test_controller_of_another_kind_has_another_finalizer(cluster: MemoryCluster) -> None:
    thing = held(cluster, THINGS, "p", OURS, "metacontroller.io/decoratorcontroller-gone")

    await run(cluster, "dec/gone")

    assert unstructured.finalizers(thing) == [OURS]


@pytest.mark.parametrize(("controller", "error"), [("gone", DevkitError), ("Deployment/gone", NothingToPlan)])
async def test_controller_is_named_with_its_kind(cluster: MemoryCluster, controller: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="CompositeController/"):
        await run(cluster, controller)


async def test_controllers_themselves_are_objects_like_others(cluster: MemoryCluster) -> None:
    other = held(cluster, COMPOSITES, "other", OURS)

    await run(cluster)

    assert unstructured.finalizers(other) == []


OF_COMPONENTS = "op.example.com/finalizer"


async def test_controller_that_names_its_finalizer_is_asked_for_it(cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]) -> None:
    unstructured.metadata(cluster.component("gone", prefix="op.example.com"))["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    thing = held(cluster, THINGS, "p", OF_COMPONENTS)

    await run(cluster, "ComponentController/gone")

    assert unstructured.finalizers(thing) == []
    assert f"1 objects had the finalizer {OF_COMPONENTS}" in capsys.readouterr().err


async def test_finalizer_of_a_controller_that_is_gone_has_to_be_named_if_it_named_it(cluster: MemoryCluster) -> None:
    thing = held(cluster, THINGS, "p", OF_COMPONENTS)

    with pytest.raises(DevkitError, match="add --finalizer NAME"):
        await run(cluster, "ComponentController/gone")
    assert unstructured.finalizers(thing) == [OF_COMPONENTS]

    await run(cluster, "ComponentController/gone", finalizer=OF_COMPONENTS)
    assert unstructured.finalizers(thing) == []
