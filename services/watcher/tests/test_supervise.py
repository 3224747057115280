"""Controllers and CRDs come, change and go before a real API server: what runs is what is installed, and each
difference is told.
"""

import asyncio
from dataclasses import replace

import httpx
import pytest

from metaloop.common.api.kinds import KINDS
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import JsonObject, loads
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import CachedObservation
from metaloop.common.settings import Listener
from metaloop.common.testing.polling import eventually
from metaloop.devkit.ports import free_ports
from metaloop.devkit.testbed.apiproxy import ApiProxy, WatchFault
from metaloop.devkit.testbed.cluster import COMPOSITES, CONFIG_MAPS, CRDS, Cluster
from metaloop.devkit.testbed.crashes import raise_in
from metaloop.devkit.testbed.lab import install, install_parent
from metaloop.devkit.testbed.manifests import config_map, crd, parent_resource
from metaloop.watcher.app import Watcher
from metaloop.watcher.core.kinds.registry import WORLDS
from metaloop.watcher.core.kinds.world import by_kind
from metaloop.watcher.core.watch import Watch, WatchId
from metaloop.watcher.explain import Explainer
from metaloop.watcher.settings import WatcherSettings
from metaloop.watcher.views import Views

from .scenes import SELDOM_SECONDS, Heard, Scene, watcher_of

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

SERVICE_ACCOUNTS = ResourceInfo(api_version="v1", resource="serviceaccounts", kind="ServiceAccount", namespaced=True)


async def test_a_change_in_the_cluster_becomes_a_mark_with_its_reason(scene: Scene):
    await scene.install_served()

    await scene.create_parent()
    await scene.marked("p", f"{scene.parents.kind} {scene.namespace}/p added")
    scene.forget_marks()
    await scene.cluster.create(CONFIG_MAPS, config_map("c", labels={"parent": "p"}, namespace=scene.namespace), namespace=scene.namespace)

    await scene.marked("p", f"ConfigMap {scene.namespace}/c added")
    seen = scene.watcher.routing.observer.observe(JobKey(scene.id, scene.parents.id, scene.namespace, "p"))
    assert isinstance(seen, CachedObservation)
    assert [unstructured.name(loads(child)) for child in seen.children[0].objects] == ["c"]


async def test_parents_that_are_there_already_are_marked_when_the_controller_starts(scene: Scene):
    await scene.serve_parents()
    await scene.create_parent("p")

    await scene.install()

    await scene.marked("p", "controller started")
    assert scene.heard.of(scene.name) == ["Starting", "Started"]


@pytest.mark.parametrize("ending", ["cancelled", "crashed"])
async def test_watch_that_ends_unasked_is_started_again_and_fails_readiness_meanwhile(scene: Scene, ending: str):
    await scene.install_served()
    watch = f"watch {scene.parents.id}"
    task = next(each for each in asyncio.all_tasks() if each.get_name() == watch)

    if ending == "cancelled":
        task.cancel()
    else:
        await eventually(lambda: raise_in(task, RuntimeError("thrown by a test")))

    await eventually(lambda: f"started again: {scene.parents.id}" in scene.watcher.supervisor.problem())
    await scene.create_parent()
    await scene.marked("p", f"{scene.parents.kind} {scene.namespace}/p added")
    assert scene.watcher.supervisor.problem() == ""


async def test_a_controller_that_is_deleted_stops_and_its_watches_end(scene: Scene):
    await scene.install_served()
    assert scene.is_watched()

    await scene.cluster.delete(COMPOSITES, "", scene.name)

    await scene.stops()
    await eventually(lambda: not scene.is_watched())
    assert scene.heard.of(scene.name) == ["Starting", "Started", "Stopping", "Stopped"]


async def test_a_kind_whose_crd_is_edited_is_no_trouble_of_its_controllers(scene: Scene, proxy: ApiProxy):
    """The API server ends its watches then, and turns everybody away for some 200 ms."""
    await scene.install_served()
    path = f"/{scene.parents.resource}"
    scene.watcher.routing.caches[WatchId(scene.parents.id)].sections[""].status.heard_at += 60  # however long the two refusals take here

    proxy.refusals[path] = 429
    asked = len(proxy.asked)
    proxy.break_watches(WatchFault.END, of=path)
    await eventually(lambda: sum(each.path.endswith(path) for each in proxy.asked[asked:]) >= 2)
    proxy.refusals.clear()

    await scene.create_parent("p")
    await scene.marked("p", f"{scene.parents.kind} {scene.namespace}/p added")
    assert scene.heard.warnings(scene.name) == []


async def test_two_controllers_share_one_watch_which_lives_as_long_as_either(scene: Scene, proxy: ApiProxy):
    await scene.install_served()
    await scene.install(f"{scene.name}-2")
    await eventually(lambda: {scene.name, f"{scene.name}-2"} <= {each.name for each in served(scene.watcher)})
    lists = [asked for asked in proxy.asked if asked.is_list and asked.path.endswith(f"/{scene.parents.resource}")]
    assert len([asked for asked in lists if asked.query.get("sendInitialEvents")]) >= 1

    await scene.cluster.delete(COMPOSITES, "", scene.name)
    await scene.stops()

    assert scene.is_watched()
    await scene.cluster.delete(COMPOSITES, "", f"{scene.name}-2")
    await eventually(lambda: not scene.is_watched())


async def test_a_controller_waits_for_its_crd_and_starts_as_soon_as_it_appears(scene: Scene):
    await scene.install()
    await scene.told(f"waiting for {scene.parents.id}")
    assert scene.watcher.supervisor.problem() == ""

    await install_parent(scene.cluster, scene.parents)

    await scene.runs()
    told = scene.heard.of(scene.name)
    assert (told[0], told[-2:]) == ("CreateError", ["Starting", "Started"])
    assert sum("waiting for" in warning for warning in scene.heard.warnings(scene.name)) == 1


async def test_a_crd_that_comes_back_as_another_kind_is_watched_anew(scene: Scene):
    await scene.install_served()
    await scene.create_parent("former")
    await scene.marked("former", f"{scene.parents.kind} {scene.namespace}/former added")

    await scene.cluster.delete(CRDS, "", f"{scene.parents.resource}.{scene.parents.group}")
    await eventually(lambda: not scene.watcher.served.resources.get(scene.parents.id))
    scene.parents = parent_resource(scene.parents.resource, namespaced=False)
    await install_parent(scene.cluster, scene.parents)

    await eventually(lambda: scene.running is not None and not scene.running.parents[0].watch.resource.namespaced)
    await scene.create_parent("latter", namespace="")
    await scene.marked("latter", f"{scene.parents.kind} latter added")
    assert "former" not in scene.marks()


async def test_a_crd_that_comes_back_has_all_parents_looked_at(scene: Scene):
    """While it was away, syncs may have failed for lack of it: they must not sit out their backoff."""
    children = parent_resource(f"{scene.parents.resource}kids")
    await scene.serve_parents(children)
    await scene.serve_parents()
    rule: JsonObject = {"apiVersion": children.api_version, "resource": children.resource}
    await scene.install(childResources=[rule])
    await scene.runs()
    await scene.create_parent("p")
    await scene.marked("p", f"{scene.parents.kind} {scene.namespace}/p added")

    await scene.cluster.delete(CRDS, "", f"{children.resource}.{children.group}")
    await scene.told(f"waiting for {children.id}")
    scene.forget_marks()
    await install_parent(scene.cluster, children)

    await scene.marked("p", "its resources can be watched again")


async def test_a_version_that_is_added_to_a_crd_starts_who_waits_for_it(scene: Scene):
    await install_parent(scene.cluster, scene.parents)
    later: JsonObject = {"apiVersion": f"{scene.parents.group}/v2", "resource": scene.parents.resource}
    await scene.install(parentResource=later)
    await scene.told(f"{scene.parents.group}/v2")

    manifest = await scene.cluster.get(CRDS, "", f"{scene.parents.resource}.{scene.parents.group}")
    versions = unstructured.child_object(manifest, "spec")["versions"]
    assert isinstance(versions, list)
    added = {**versions[0], "name": "v2", "storage": False}  # type: ignore[dict-item]
    await scene.cluster.patch(CRDS, "", unstructured.name(manifest), {"spec": {"versions": [*versions, added]}})

    await scene.runs()


async def test_a_parent_resource_without_status_is_reported_until_it_has_one(scene: Scene):
    without = parent_resource(scene.parents.resource, has_status=False)
    await scene.serve_parents(without)
    await scene.install()
    await scene.told("does not have subresource 'Status' enabled")
    assert scene.heard.of(scene.name) == ["SyncError"]

    versions = unstructured.child_object(crd(scene.parents), "spec")["versions"]
    await scene.cluster.patch(CRDS, "", f"{without.resource}.{without.group}", {"spec": {"versions": versions}})

    await scene.runs()


async def test_built_in_parents_are_served_where_they_have_a_status(scene: Scene):
    await scene.install(parentResource={"apiVersion": "apps/v1", "resource": "deployments"})
    await scene.runs()

    await scene.edit({"spec": {"parentResource": {"apiVersion": "v1", "resource": "configmaps"}}})

    await scene.told("does not have subresource 'Status' enabled")
    assert scene.running is not None


async def test_a_bad_edit_is_told_once_and_the_former_instance_runs_on(scene: Scene):
    await scene.install_served()
    former = scene.running

    await scene.edit({"spec": {"parentResource": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}}})
    await scene.told("spec.parentResource.labelSelector.matchExpressions[0].operator")
    await scene.create_parent("p")
    await scene.marked("p", f"{scene.parents.kind} {scene.namespace}/p added")
    await scene.edit({"metadata": {"labels": {"a": "b"}}})
    await eventually(lambda: (seen := scene.record(COMPOSITES, "", scene.name)) is not None and seen.labels == {"a": "b"})

    assert scene.running is former
    assert scene.heard.of(scene.name) == ["Starting", "Started", "CreateError"]


async def test_an_edited_spec_is_another_instance_and_has_all_parents_looked_at(scene: Scene):
    await scene.install_served()
    await scene.create_parent("p")
    await scene.marked("p", f"{scene.parents.kind} {scene.namespace}/p added")
    scene.forget_marks()

    await scene.edit({"spec": {"generateSelector": True}})

    await scene.marked("p", "controller changed")
    assert scene.heard.of(scene.name) == ["Starting", "Started", "Stopping", "Stopped", "Starting", "Started"]


async def test_edited_metadata_is_shown_to_hooks_without_a_restart(scene: Scene):
    await scene.install_served()
    former = scene.running

    await scene.edit({"metadata": {"annotations": {"note": "new"}}})

    await eventually(lambda: b'"note":"new"' in scene.watcher.routing.running.raw(scene.id))
    assert scene.running is former


async def test_an_annotation_of_ours_has_all_parents_looked_at(scene: Scene):
    await scene.install_served()
    await scene.create_parent()
    await scene.marked("p", f"{scene.parents.kind} {scene.namespace}/p added")
    scene.forget_marks()

    await scene.edit({"metadata": {"annotations": {"metaloop.dev/paused": "true"}}})

    await scene.marked("p", "controller was told something else")
    assert scene.heard.of(scene.name) == ["Starting", "Started", "Paused"]


async def test_a_controller_that_goes_on_with_its_former_spec_can_be_paused_too(scene: Scene):
    await scene.install_served()
    await scene.create_parent()
    await scene.marked("p", f"{scene.parents.kind} {scene.namespace}/p added")
    await scene.edit({"spec": {"hooks": None}})
    await scene.told("hooks")
    scene.forget_marks()

    await scene.edit({"metadata": {"annotations": {"metaloop.dev/paused": "true"}}})

    await scene.marked("p", "controller was told something else")
    seen = scene.watcher.routing.observer.observe(scene.key())
    assert isinstance(seen, CachedObservation)
    shown = loads(seen.controller)
    assert unstructured.annotations(shown) == {"metaloop.dev/paused": "true"}
    assert "sync" in unstructured.child_object(unstructured.child_object(shown, "spec"), "hooks")


async def test_a_resource_that_we_may_not_see_is_the_problem_of_its_controllers_alone(scene: Scene, proxy: ApiProxy):
    await install_parent(scene.cluster, scene.parents)
    proxy.refusals["serviceaccounts"] = 403
    rule: JsonObject = {"apiVersion": "v1", "resource": "serviceaccounts"}
    await scene.install(childResources=[rule])
    await scene.told("cannot watch v1/serviceaccounts: Forbidden")
    await scene.install(f"{scene.name}-2")

    await eventually(lambda: any(each.controller.name.endswith("-2") for each in scene.watcher.routing.running))

    assert scene.running is None
    assert scene.watcher.supervisor.problem() == ""
    proxy.refusals.clear()
    await scene.runs()
    await scene.cluster.delete(COMPOSITES, "", f"{scene.name}-2")


@pytest.mark.parametrize("nonsense", [b"<html>come back later</html>", b"{}", b"[]", b'{"kind":"Status","status":"Failure"}'])
async def test_an_api_server_that_talks_nonsense_for_a_while_is_one_that_is_away(scene: Scene, proxy: ApiProxy, nonsense: bytes):
    await scene.install_served()
    await scene.create_parent("p")
    await scene.marked("p", f"{scene.parents.kind} {scene.namespace}/p added")
    served = dict(scene.watcher.served.resources)

    proxy.forgeries["/"] = nonsense
    asked = len(proxy.asked)
    proxy.break_watches(WatchFault.CUT)
    scene.watcher.served._may_differ.set()
    await eventually(lambda: sum(each.path == "/api" for each in proxy.asked[asked:]) >= 2)
    proxy.forgeries.clear()

    await scene.create_parent("q")
    await scene.marked("q", f"{scene.parents.kind} {scene.namespace}/q added")
    assert served.items() <= scene.watcher.served.resources.items()
    assert scene.record(scene.parents, scene.namespace, "p") is not None


async def test_a_watch_that_is_broken_restarts_nothing(scene: Scene, proxy: ApiProxy):
    await scene.install_served()
    await scene.create_parent("p")
    await scene.marked("p", f"{scene.parents.kind} {scene.namespace}/p added")
    scene.forget_marks()

    for fault in (WatchFault.CUT, WatchFault.EXPIRE):
        proxy.break_watches(fault)
    await scene.create_parent("q")

    await scene.marked("q", f"{scene.parents.kind} {scene.namespace}/q added")
    assert scene.marks().keys() == {"q"}
    assert scene.heard.of(scene.name) == ["Starting", "Started"]


async def test_a_kind_that_the_cluster_lacks_is_watched_once_it_is_served(kube: KubeClient, cluster: Cluster):
    resource = ResourceInfo(api_version="testbed.example.com/v1", resource="lates", kind="Late", namespaced=False, has_status=True)
    late = replace(WORLDS["MapController"], kind=replace(KINDS["MapController"], resource=resource))

    async with watcher_of(kube, Heard(), worlds=by_kind(*WORLDS.values(), late)) as watcher:
        before = watcher.routing.caches.is_synced(Watch(resource).id)
        await install(cluster, crd(resource))
        await eventually(lambda: watcher.routing.caches.is_synced(Watch(resource).id))

    assert not before


async def test_a_label_takes_a_controller_out_of_our_share_and_back(kube: KubeClient, cluster: Cluster, namespace: str):
    heard = Heard()
    async with watcher_of(kube, heard, target_label_selector="team=blue") as watcher:
        scene = Scene(watcher, heard, cluster, namespace)
        await scene.serve_parents()
        await scene.install()
        await scene.edit({"metadata": {"labels": {"team": "blue"}}})
        await scene.runs()

        await scene.edit({"metadata": {"labels": {"team": "red"}}})
        await scene.stops()
        await scene.edit({"metadata": {"labels": {"team": "blue"}}})

        await scene.runs()
        await cluster.delete(COMPOSITES, "", scene.name)
    assert heard.of(scene.name)[:6] == ["Starting", "Started", "Stopping", "Stopped", "Starting", "Started"]


async def test_two_shards_serve_each_controller_once(kube: KubeClient, cluster: Cluster, namespace: str):
    async with watcher_of(kube, Heard(), shard="0/2") as even, watcher_of(kube, Heard(), shard="1/2") as odd:
        scene = Scene(even, Heard(), cluster, namespace)
        await install_parent(cluster, scene.parents)
        names = [f"{namespace}-{number}" for number in range(6)]
        for name in names:
            await scene.install(name)

        await eventually(lambda: {each.name for each in served(even) | served(odd)} >= {*names})

        assert not served(even) & served(odd)
        assert served(even)
        assert served(odd)
        for name in names:
            await cluster.delete(COMPOSITES, "", name)


async def test_an_api_server_that_is_away_at_first_is_no_reason_to_wait_for_long(kube: KubeClient, proxy: ApiProxy):
    proxy.refusals["/"] = 503
    watcher = Watcher(WatcherSettings(discovery_interval_seconds=SELDOM_SECONDS), kube, Heard())
    async with asyncio.TaskGroup() as group:
        watcher.controllers.begin_term()
        task = group.create_task(watcher.supervisor.run())
        await eventually(lambda: len(proxy.asked) > 4)
        assert "not listed yet" in watcher.supervisor.problem()

        proxy.refusals.clear()

        await eventually(lambda: watcher.supervisor.problem() == "")
        task.cancel()


async def test_a_watcher_whose_term_ended_stops_a_controller_without_an_event(scene: Scene):
    await scene.install_served()
    told = scene.heard.of(scene.name)

    scene.watcher.controllers.end_term()
    await scene.cluster.delete(COMPOSITES, "", scene.name)

    await scene.stops()
    assert scene.heard.of(scene.name) == told


def served(watcher: Watcher) -> set[ControllerId]:
    """The controllers that a watcher runs."""
    return {each.controller.id for each in watcher.routing.running}


async def test_views_tell_what_is_cached_who_waits_and_why(scene: Scene):
    watcher = scene.watcher
    views = Views(
        queue=watcher.routing.queue,
        caches=watcher.routing.caches,
        subscriptions=watcher.routing.subscriptions,
        health=watcher.controllers.health,
        numbers=watcher.numbers,
        explainer=Explainer(running=watcher.routing.running, caches=watcher.routing.caches, queue=watcher.routing.queue),
    )
    await scene.install_served()
    await scene.create_parent("p")
    await scene.marked("p", f"{scene.parents.kind} {scene.namespace}/p added")
    (port,) = free_ports(1)

    async with asyncio.TaskGroup() as group, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/debug/", timeout=30) as client:
        serving = group.create_task(views.serve(Listener(host="127.0.0.1", port=port), token=""))
        queue, cache, controllers, leases = [await _shown(client, name) for name in ("queue", "cache", "controllers", "leases")]
        serving.cancel()

    (entry,) = [each for each in queue if scene.name in str(each["key"])]
    assert (entry["stage"], entry["class"], entry["reason"]) == ("waiting", "new", f"{scene.parents.kind} {scene.namespace}/p added")
    assert isinstance(entry["ageSeconds"], float)
    (cached,) = [each for each in cache if each["resource"] == str(scene.parents.id)]
    assert (cached["objects"], cached["synced"], cached["problem"]) == (1, True, "")
    (controller,) = [each for each in controllers if each["controller"] == f"CompositeController {scene.name}"]
    assert (controller["ready"], controller["reason"], controller["parents"]) == (True, "Synced", 1)
    assert leases == []


async def _shown(client: httpx.AsyncClient, name: str) -> list[JsonObject]:
    async with asyncio.timeout(30):
        while True:
            try:
                return (await client.get(name)).raise_for_status().json()
            except httpx.ConnectError:
                await asyncio.sleep(0.01)
