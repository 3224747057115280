"""The watcher's view of one parent, as lists show it."""

import pytest
from memory_cluster import COMPOSITES, CONFIG_MAPS, NAMESPACES, SECRETS, THINGS, MemoryCluster

from metaloop.common.api import PAUSED_ANNOTATION
from metaloop.common.api.kinds import parse_controller
from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import parse_selector
from metaloop.common.observation import Granted, Related
from metaloop.common.related_query import ANYWHERE, InNamespace, InNamespacesWith, RelatedQuery
from metaloop.devkit.dryrun.controllers import served_by
from metaloop.devkit.dryrun.snapshot import ClusterSnapshot, unpaused
from metaloop.devkit.errors import NothingToPlan
from metaloop.reconciler.observe import key_of
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.watchset import instance_of


async def observed(kube: KubeClient, controller: JsonObject, parent: JsonObject) -> Granted:
    """The grant for a sync of this parent."""
    snapshot, instance = await a_snapshot(kube, controller)
    return await snapshot.observed(instance, controller, THINGS, parent)


async def a_snapshot(kube: KubeClient, controller: JsonObject) -> tuple[ClusterSnapshot, Instance]:
    """A snapshot, and the instance of a controller."""
    served = await served_by(kube)
    instance = instance_of(parse_controller(controller), served)
    assert isinstance(instance, Instance)
    return ClusterSnapshot(kube, served, field_manager="metacontroller"), instance


def names(granted: Granted) -> list[str]:
    """The candidates for children."""
    return [unstructured.name(obj) for group in granted.observation.children for obj in group.objects]


async def test_parent_is_shown_with_its_children_and_the_orphans_that_it_may_adopt(cluster: MemoryCluster, kube: KubeClient) -> None:
    parent, other = cluster.thing("p"), cluster.thing("q")
    cluster.config_map("child", of=parent)
    cluster.config_map("foreign", of=other)
    orphan = cluster.config_map("orphan")
    unstructured.metadata(orphan)["labels"] = {"parent": "p"}

    granted = await observed(kube, cluster.composite("web"), parent)

    assert sorted(names(granted)) == ["child", "orphan"]
    assert unstructured.name(granted.observation.parent) == "p"


async def test_objects_of_other_namespaces_are_not_even_listed(cluster: MemoryCluster, kube: KubeClient) -> None:
    parent = cluster.thing("p")
    cluster.config_map("elsewhere", of=parent, namespace="other")

    granted = await observed(kube, cluster.composite("web"), parent)

    assert names(granted) == []
    assert [each for each in cluster.asked if "configmaps" in each] == ["GET /api/v1/namespaces/default/configmaps?limit=500"]


async def test_all_pages_of_a_list_are_read(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.page_size = 2
    parent = cluster.thing("p")
    for number in range(5):
        cluster.config_map(f"c{number}", of=parent)

    granted = await observed(kube, cluster.composite("web"), parent)

    assert sorted(names(granted)) == ["c0", "c1", "c2", "c3", "c4"]
    assert len([each for each in cluster.asked if "configmaps" in each]) == 3


async def test_items_of_a_list_are_given_the_kind_that_the_list_leaves_out(cluster: MemoryCluster, kube: KubeClient) -> None:
    parent = cluster.thing("p")
    cluster.config_map("child", of=parent)

    granted = await observed(kube, cluster.composite("web"), parent)

    [child] = granted.observation.children[0].objects
    assert (child["apiVersion"], child["kind"]) == ("v1", "ConfigMap")


async def test_parent_that_the_controller_does_not_select_is_told(cluster: MemoryCluster, kube: KubeClient) -> None:
    parent = cluster.thing("p", labels={"color": "red"})

    with pytest.raises(NothingToPlan, match="CompositeController/web does not serve Thing default/p"):
        await observed(kube, cluster.composite("web", labels={"color": "blue"}), parent)


async def test_pause_is_taken_away_from_parent_and_controller(cluster: MemoryCluster, kube: KubeClient) -> None:
    parent = cluster.thing("p", annotations={PAUSED_ANNOTATION: "true", "kept": "yes"})
    controller = cluster.composite("web")
    unstructured.metadata(controller)["annotations"] = {PAUSED_ANNOTATION: "true"}

    granted = await observed(kube, controller, parent)

    assert unstructured.annotations(granted.observation.parent) == {"kept": "yes"}
    assert unstructured.annotations(granted.observation.controller) == {}


def test_object_that_is_not_paused_is_left_as_it_is() -> None:
    obj: JsonObject = {"metadata": {"name": "p", "annotations": {"kept": "yes"}}}

    assert unpaused(obj) is obj


async def test_nothing_is_asked_for_but_reads(cluster: MemoryCluster, kube: KubeClient) -> None:
    parent = cluster.thing("p")

    await observed(kube, cluster.composite("web"), parent)

    assert {each.split()[0] for each in cluster.asked} == {"GET"}
    assert COMPOSITES.collection_path() not in " ".join(cluster.asked)


QUERIES: dict[str, tuple[RelatedQuery, set[str]]] = {
    # what it shows: (the query, the names of what it selects)
    "by name": (RelatedQuery(resource=CONFIG_MAPS.id, where=InNamespace("default"), names=frozenset({"here"})), {"here"}),
    "in a namespace": (RelatedQuery(resource=CONFIG_MAPS.id, where=InNamespace("blue")), {"blue-one"}),
    "anywhere": (RelatedQuery(resource=CONFIG_MAPS.id, where=ANYWHERE), {"here", "blue-one", "red-one"}),
    "in namespaces with a label": (
        RelatedQuery(resource=CONFIG_MAPS.id, where=InNamespacesWith(parse_selector({"matchLabels": {"color": "red"}}, "s"))),
        {"red-one"},
    ),
    "of a kind that has no object": (RelatedQuery(resource=SECRETS.id, where=ANYWHERE), set()),
}


async def related(cluster: MemoryCluster, kube: KubeClient, query: RelatedQuery) -> Related:
    """The objects that a query selects in a cluster with coloured namespaces."""
    for color in ("red", "blue"):
        cluster.put(NAMESPACES, {"metadata": {"name": color, "labels": {"color": color}}})
        cluster.config_map(f"{color}-one", namespace=color)
    cluster.config_map("here")
    parent, controller = cluster.thing("p"), _with_customize_hook(cluster)
    snapshot, instance = await a_snapshot(kube, controller)
    granted = await snapshot.observed(instance, controller, THINGS, parent)
    request = RelatedRequest(key=key_of(granted.observation), lease=granted.lease, fingerprint="f", queries=(query,))
    return await snapshot.related(granted.shard, request)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
async def test_related_objects_are_selected_as_the_watcher_does(
    cluster: MemoryCluster, kube: KubeClient, query: tuple[RelatedQuery, set[str]]
) -> None:
    asked, expected = query

    found = await related(cluster, kube, asked)

    assert {unstructured.name(obj) for group in found.groups for obj in group.objects} == expected
    assert (list(found.unknown), list(found.waiting)) == ([], [])


async def test_objects_that_are_watched_within_a_label_are_listed_within_it(cluster: MemoryCluster, kube: KubeClient) -> None:
    ours = unstructured.metadata(cluster.config_map("ours"))
    ours["labels"] = {"op.example.com/owner-id": "us"}
    labels = parse_selector({"matchLabels": {"op.example.com/owner-id": "us"}}, "s")

    found = await related(cluster, kube, RelatedQuery(resource=CONFIG_MAPS.id, labels=labels, watched="op.example.com/owner-id"))

    assert [unstructured.name(obj) for group in found.groups for obj in group.objects] == ["ours"]
    [asked] = [each for each in cluster.asked if each.startswith("GET /api/v1/configmaps")]
    assert "labelSelector=op.example.com" in asked


async def test_related_resource_that_nobody_serves_is_unknown(cluster: MemoryCluster, kube: KubeClient) -> None:
    nothings = ResourceId("v9", "nothings")

    found = await related(cluster, kube, RelatedQuery(resource=nothings, where=ANYWHERE))

    assert list(found.unknown) == [nothings]


def _with_customize_hook(cluster: MemoryCluster) -> JsonObject:
    hooks = {name: {"webhook": {"url": f"http://hook.example/{name}"}} for name in ("sync", "customize")}
    return cluster.composite("web", hooks=hooks)
