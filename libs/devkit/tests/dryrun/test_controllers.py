"""Which controller and which parent arguments name, and the errors if that is not clear."""

import pytest
from memory_cluster import CONFIG_MAPS, THINGS, MemoryCluster

from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.devkit.dryrun.controllers import controller_named, find_by_controller, find_by_parent, installed, served_by
from metaloop.devkit.errors import NothingToPlan

NAMES: dict[str, tuple[str, str]] = {
    "web": ("", "web"),
    "CompositeController/web": ("CompositeController", "web"),
    "compositecontroller/web": ("CompositeController", "web"),
    "compositecontrollers/web": ("CompositeController", "web"),
    "cc/web": ("CompositeController", "web"),
    "cctl/web": ("CompositeController", "web"),
    "DecoratorController/web": ("DecoratorController", "web"),
    "dec/web": ("DecoratorController", "web"),
    "decorators/web": ("DecoratorController", "web"),
}


@pytest.mark.parametrize(("text", "named"), NAMES.items(), ids=NAMES.keys())
def test_controller_is_named_by_kind_plural_or_short_name(text: str, named: tuple[str, str]) -> None:
    assert controller_named(text) == named


def test_kind_that_is_none_is_told_with_those_that_are() -> None:
    with pytest.raises(NothingToPlan, match="Deployment is not a kind of controller: name CompositeController/NAME or DecoratorController"):
        controller_named("Deployment/web")


async def test_what_is_served_is_discovered(kube: KubeClient) -> None:
    served = await served_by(kube)

    assert served[THINGS.id] == THINGS
    assert served[CONFIG_MAPS.id] == CONFIG_MAPS


@pytest.mark.parametrize(
    ("kind", "name", "found"),
    [
        ("", "", ["CompositeController/a", "CompositeController/b", "DecoratorController/a"]),
        ("CompositeController", "", ["CompositeController/a", "CompositeController/b"]),
        ("", "a", ["CompositeController/a", "DecoratorController/a"]),
        ("DecoratorController", "a", ["DecoratorController/a"]),
        ("DecoratorController", "b", []),
    ],
)
async def test_controllers_are_found_by_kind_and_name(
    cluster: MemoryCluster, kube: KubeClient, kind: str, name: str, found: list[str]
) -> None:
    cluster.composite("a")
    cluster.composite("b")
    cluster.decorator("a")

    controllers = await installed(kube, kind=kind, name=name)

    assert [f"{each['kind']}/{unstructured.name(each)}" for each in controllers] == found
    assert all(each["apiVersion"] == "metacontroller.k8s.io/v1alpha1" for each in controllers)


async def test_parent_of_a_named_controller_is_found(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.composite("web")
    cluster.thing("p")

    candidate = await find_by_controller(kube, "web", "default/p")

    assert (str(candidate.instance.controller.id), candidate.info, unstructured.name(candidate.parent)) == (
        "CompositeController/web",
        THINGS,
        "p",
    )


@pytest.mark.parametrize("parent", ["thing/p", "things/p", "Thing/p", "things.example.com/p"])
async def test_parent_is_named_by_its_kind_or_resource(cluster: MemoryCluster, kube: KubeClient, parent: str) -> None:
    cluster.composite("web")
    cluster.thing("p")

    candidate = await find_by_parent(kube, parent, namespace="default")

    assert unstructured.name(candidate.parent) == "p"


async def test_controller_that_selects_the_parent_is_preferred(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.composite("blue", labels={"color": "blue"})
    cluster.composite("red", labels={"color": "red"})
    cluster.thing("p", labels={"color": "red"})

    candidate = await find_by_parent(kube, "thing/p", namespace="default")

    assert candidate.instance.controller.id.name == "red"


async def test_controller_whose_finalizer_the_parent_has_still_serves_it(cluster: MemoryCluster, kube: KubeClient) -> None:
    finalize = {"sync": {"webhook": {"url": "http://hook.example/sync"}}, "finalize": {"webhook": {"url": "http://hook.example/finalize"}}}
    cluster.composite("blue", labels={"color": "blue"}, hooks=finalize)
    cluster.composite("green", labels={"color": "green"})
    parent = cluster.thing("p", labels={"color": "red"})
    unstructured.metadata(parent)["finalizers"] = ["metacontroller.io/compositecontroller-blue"]

    candidate = await find_by_parent(kube, "thing/p", namespace="default")

    assert candidate.instance.controller.id.name == "blue"


async def test_controller_is_named_where_several_serve_the_parent(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.composite("one")
    cluster.decorator("two")
    cluster.thing("p")

    with pytest.raises(NothingToPlan, match="with --controller: CompositeController/one, DecoratorController/two"):
        await find_by_parent(kube, "thing/p", namespace="default")
    candidate = await find_by_parent(kube, "thing/p", namespace="default", controller="two")

    assert str(candidate.instance.controller.id) == "DecoratorController/two"


async def test_kind_is_named_where_two_controllers_have_one_name(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.composite("web")
    cluster.decorator("web")
    cluster.thing("p")

    with pytest.raises(NothingToPlan, match="with its kind"):
        await find_by_controller(kube, "web", "default/p")
    candidate = await find_by_controller(kube, "dec/web", "default/p")

    assert candidate.instance.controller.id.kind == "DecoratorController"


async def test_controller_that_is_not_there_is_told(kube: KubeClient) -> None:
    with pytest.raises(NothingToPlan, match="there is no controller web"):
        await find_by_controller(kube, "web", "default/p")


async def test_parent_without_a_kind_is_told_what_is_missing(kube: KubeClient) -> None:
    with pytest.raises(NothingToPlan, match="p should be KIND/NAME"):
        await find_by_parent(kube, "p", namespace="default")


async def test_parent_that_is_not_there_is_told_with_the_controllers(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.composite("web")

    with pytest.raises(NothingToPlan, match="there is no thing default/p of CompositeController/web"):
        await find_by_parent(kube, "thing/p", namespace="default")


async def test_parent_that_needs_a_namespace_is_not_looked_for_without_one(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.composite("web")
    cluster.thing("p")

    with pytest.raises(NothingToPlan, match="there is no thing p"):
        await find_by_parent(kube, "thing/p", namespace="")


async def test_controller_that_can_not_be_served_is_told_with_its_problem(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.composite("web", childResources=[{"apiVersion": "v9", "resource": "nothings"}])
    cluster.composite("broken", hooks={"sync": {"webhook": {"url": ""}}})

    with pytest.raises(NothingToPlan) as raised:
        await find_by_parent(kube, "thing/p", namespace="default")

    assert "CompositeController/web can't be served" in str(raised.value)
    assert "v9/nothings" in str(raised.value)
    assert "there is no thing" not in str(raised.value)
