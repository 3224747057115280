"""Related objects before a real API server: their watches last as long as somebody is subscribed, and each change marks
its subscribers.
"""

import pytest

from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.json import JsonObject, loads
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.selector import Requirement, Selector
from metaloop.common.observation import CachedObservation, CachedRelated
from metaloop.common.related_query import InNamespace, InNamespacesWith, RelatedQuery
from metaloop.common.testing.polling import eventually
from metaloop.devkit.testbed.cluster import COMPOSITES, CRDS, NAMESPACES, Cluster
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import parent, parent_resource
from metaloop.watcher.core.watch import WatchId

from .scenes import Heard, Scene, watcher_of

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

SECRETS = ResourceInfo(api_version="v1", resource="secrets", kind="Secret", namespaced=True)


async def test_a_related_object_marks_its_subscribers_from_the_subscription_on(scene: Scene):
    await _served_parent(scene)
    assert _subscribe(scene, _one_secret(scene)).waiting == [SECRETS]

    await scene.marked("p", "its related resources can be watched now")
    assert _shown(scene) == []
    scene.forget_marks()
    await _create_secret(scene, "other")
    await _create_secret(scene, "mine")

    await scene.marked("p", f"related Secret {scene.namespace}/mine added")
    assert _shown(scene) == ["mine"]


async def test_a_resource_without_subscribers_is_no_longer_watched(kube: KubeClient, cluster: Cluster, namespace: str):
    heard = Heard()
    async with watcher_of(kube, heard, related_grace_seconds=0.2) as watcher:
        scene = Scene(watcher, heard, cluster, namespace)
        await _served_parent(scene)
        _subscribe(scene, _one_secret(scene))
        await eventually(lambda: scene.watcher.routing.caches.is_synced(WatchId(SECRETS.id)))

        _subscribe(scene)

        await eventually(lambda: not scene.is_watched(SECRETS))
        await cluster.delete(COMPOSITES, "", scene.name)


async def test_a_deleted_parent_has_no_subscriptions(scene: Scene):
    await _served_parent(scene)
    _subscribe(scene, _one_secret(scene))

    await scene.cluster.delete(scene.parents, scene.namespace, "p")

    await eventually(lambda: scene.watcher.routing.subscriptions.watches == set())


async def test_a_related_kind_that_does_not_exist_yet_is_told_and_heals_by_itself(scene: Scene):
    await _served_parent(scene)
    later = parent_resource(f"{scene.parents.resource}later")
    assert _subscribe(scene, RelatedQuery(resource=later.id)).unknown == [later.id]
    await scene.told(f"waiting for {later.id}")

    await install_parent(scene.cluster, later)

    await scene.marked("p", "its related resources can be watched now")
    assert _shown(scene) == []


async def test_a_related_kind_that_goes_away_and_comes_back_marks_its_subscribers(scene: Scene):
    await _served_parent(scene)
    coming = parent_resource(f"{scene.parents.resource}coming")
    await install_parent(scene.cluster, coming)
    await eventually(lambda: coming.id in scene.watcher.served.resources)
    _subscribe(scene, RelatedQuery(resource=coming.id))
    await scene.marked("p", "its related resources can be watched now")
    scene.forget_marks()

    await scene.cluster.delete(CRDS, "", f"{coming.resource}.{coming.group}")
    await scene.marked("p", f"related {coming.id} is not watched any more")
    assert _subscribe(scene, RelatedQuery(resource=coming.id)).unknown == [coming.id]
    scene.forget_marks()
    await install_parent(scene.cluster, coming)
    await scene.marked("p", "its related resources can be watched now")
    await scene.cluster.create(coming, parent(coming, "c", namespace=scene.namespace), namespace=scene.namespace)

    await eventually(lambda: _shown(scene) == ["c"])


async def test_a_label_of_a_namespace_brings_what_is_in_it_within_reach(scene: Scene):
    await _served_parent(scene)
    await _create_secret(scene, "mine")
    mine = InNamespacesWith(Selector((Requirement("scene", "In", (scene.name,)),)))
    waiting = _subscribe(scene, RelatedQuery(resource=SECRETS.id, where=mine)).waiting
    assert {each.id for each in waiting} == {SECRETS.id, NAMESPACES.id}
    await scene.marked("p", "its related resources can be watched now")
    assert _shown(scene) == []
    scene.forget_marks()

    await scene.cluster.patch(NAMESPACES, "", scene.namespace, {"metadata": {"labels": {"scene": scene.name}}})

    await scene.marked("p", f"related Namespace {scene.namespace} changed")
    assert _shown(scene) == ["mine"]


async def _served_parent(scene: Scene) -> None:
    await scene.install_served()
    await scene.create_parent("p")
    await eventually(lambda: isinstance(scene.watcher.routing.observer.observe(scene.key()), CachedObservation))
    scene.forget_marks()


async def _create_secret(scene: Scene, name: str) -> None:
    manifest: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    await scene.cluster.create(SECRETS, manifest, namespace=scene.namespace)


def _one_secret(scene: Scene) -> RelatedQuery:
    return RelatedQuery(resource=SECRETS.id, where=InNamespace(scene.namespace), names=frozenset({"mine"}))


def _subscribe(scene: Scene, *queries: RelatedQuery) -> CachedRelated:
    return scene.watcher.routing.router.subscribe(RelatedRequest(key=scene.key(), lease="", fingerprint="f", queries=queries))


def _shown(scene: Scene) -> list[str]:
    seen = scene.watcher.routing.observer.observe(scene.key())
    assert isinstance(seen, CachedObservation)
    assert seen.related is not None
    return [unstructured.name(loads(each)) for group in seen.related.groups for each in group.objects]
