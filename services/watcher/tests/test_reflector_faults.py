"""The reflector and its cache before a real API server, with faults between: in the end the cache holds what the server
holds.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from metaloop.common.json import JsonObject, loads
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.testing.polling import eventually
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.apiproxy import ApiProxy, WatchFault
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, Cluster
from metaloop.devkit.testbed.manifests import config_map
from metaloop.watcher.core.cache import ResourceCache
from metaloop.watcher.core.catch_up import CATCH_UP_SECONDS, LONGEST_FREEZE_SECONDS, CatchUp
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.watch import Scope, Watch
from metaloop.watcher.reflector import WatchSettings
from metaloop.watcher.watches import Watches

from .routing_in_hand import RoutingInHand

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

WATCH = Watch(CONFIG_MAPS)
API_SERVICES = ResourceInfo(api_version="apiregistration.k8s.io/v1", resource="apiservices", kind="APIService", namespaced=False)
PUT_BY_THE_CLUSTER = "kube-root-ca.crt"
"""Each namespace gets one, as soon as the cluster gets to it."""


class Watched:
    """The ConfigMaps of one namespace, as the cache has them."""

    def __init__(self, proxy: ApiProxy, namespace: str) -> None:
        self.routing = RoutingInHand()
        self.changes: list[Change] = []
        self._proxy = proxy
        self._namespace = namespace

    def take(self, change: Change) -> None:
        """A ChangeObserver."""
        self.changes.append(change)

    @property
    def cache(self) -> ResourceCache:
        (cache,) = self.routing.caches
        return cache

    def texts(self) -> dict[str, str]:
        records = [record for key, record in self.cache.objects.items() if key[0] == self._namespace and key[1] != PUT_BY_THE_CLUSTER]
        return {record.key[1]: loads(record.raw).get("data", {}).get("text", "") for record in records}

    @property
    def is_behind(self) -> bool:
        return self.is_behind_at(asyncio.get_running_loop().time())

    def is_behind_at(self, now: float) -> bool:
        return self.routing.caches.is_behind([self.cache.watch.id], now=now)

    def broke(self, *, seconds_ago: float) -> None:
        """From now on it counts as behind since then."""
        self.cache.sections[""].status.catch_up = CatchUp()
        self.cache.sections[""].status.catch_up.broke(asyncio.get_running_loop().time() - seconds_ago)

    def lists(self) -> int:
        """How many lists were begun; one of a single object only asks how far the server has come."""
        lists = [asked.query for asked in self._proxy.asked if asked.is_list and asked.path.endswith("/configmaps")]
        return sum(query.get("limit") != "1" and "continue" not in query for query in lists)

    async def until(self, texts: dict[str, str]) -> None:
        await eventually(lambda: self.texts() == texts, within_seconds=60)


@asynccontextmanager
async def watching(
    kube: KubeClient, proxy: ApiProxy, namespace: str, *, watch: Watch = WATCH, inactivity_seconds: float = 60.0
) -> AsyncIterator[Watched]:
    """A watch of ConfigMaps, all unless another is given, synced."""
    watched = Watched(proxy, namespace)
    watches = watches_of(kube, watched, inactivity_seconds=inactivity_seconds)
    async with asyncio.TaskGroup() as group:
        watches.start(watch, group, observer=watched)
        await eventually(lambda: watched.cache.is_synced)
        yield watched
        watches.stop(watch.id)


def watches_of(kube: KubeClient, watched: Watched, *, inactivity_seconds: float = 60.0) -> Watches:
    settings = WatchSettings(inactivity_seconds=inactivity_seconds)
    return Watches(kube, watched.routing, changed=asyncio.Event(), settings=settings)


async def put(cluster: Cluster, namespace: str, name: str, text: str) -> JsonObject:
    return await cluster.create(CONFIG_MAPS, config_map(name, namespace=namespace, data={"text": text}), namespace=namespace)


async def change(cluster: Cluster, namespace: str, name: str, text: str) -> JsonObject:
    return await cluster.patch(CONFIG_MAPS, namespace, name, {"data": {"text": text}})


@pytest.mark.parametrize("streams_lists", [True, False])
async def test_the_cache_follows_what_happens(kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str, streams_lists: bool):
    proxy.streams_lists = streams_lists
    await put(cluster, namespace, "there", "before")

    async with watching(kube, proxy, namespace) as watched:
        assert watched.texts()["there"] == "before"
        await put(cluster, namespace, "new", "1")
        await change(cluster, namespace, "there", "after")
        await watched.until({"there": "after", "new": "1"})
        await cluster.delete(CONFIG_MAPS, namespace, "new")
        await watched.until({"there": "after"})

        assert watched.lists() == (1 if streams_lists else 2)
    assert [str(each).rpartition(" ")[2] for each in watched.changes if each.key == (namespace, "new")] == ["added", "deleted"]


@pytest.mark.parametrize("streams_lists", [True, False])
async def test_a_watch_sees_nothing_outside_of_its_scope(
    kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str, streams_lists: bool
):
    proxy.streams_lists = streams_lists
    await cluster.create(CONFIG_MAPS, config_map("in", namespace=namespace, labels={"a": "b"}), namespace=namespace)
    await cluster.create(CONFIG_MAPS, config_map("elsewhere", namespace="default", labels={"a": "b"}), namespace="default")
    await put(cluster, namespace, "unlabelled", "0")

    async with watching(kube, proxy, namespace, watch=Watch(CONFIG_MAPS, Scope(namespace=namespace, labels="a=b"))) as watched:
        assert list(watched.cache.objects) == [(namespace, "in")]
        await cluster.create(CONFIG_MAPS, config_map("new", namespace=namespace, labels={"a": "b"}), namespace=namespace)
        await cluster.patch(CONFIG_MAPS, namespace, "in", {"metadata": {"labels": {"a": "c"}}})

        await eventually(lambda: list(watched.cache.objects) == [(namespace, "new")])

    assert [str(each).rpartition("/")[2] for each in watched.changes] == ["in added", "new added", "in deleted"]
    await cluster.delete(CONFIG_MAPS, "default", "elsewhere")


@pytest.mark.parametrize("fault", WatchFault, ids=[fault.value for fault in WatchFault])
async def test_a_watch_that_ends_is_resumed_and_misses_nothing(
    kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str, fault: WatchFault
):
    """Only versions that the server doesn't know any more make a new list necessary."""
    async with watching(kube, proxy, namespace) as watched:
        await put(cluster, namespace, "a", "0")
        await watched.until({"a": "0"})
        lists = watched.lists()

        proxy.break_watches(fault, of="configmaps")
        for text in ("1", "2", "3"):
            await change(cluster, namespace, "a", text)
        await put(cluster, namespace, "b", "new")

        await watched.until({"a": "3", "b": "new"})
        assert watched.lists() == lists + (fault is WatchFault.EXPIRE)


async def test_what_was_deleted_while_nobody_looked_is_told_as_deleted(kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str):
    async with watching(kube, proxy, namespace) as watched:
        await put(cluster, namespace, "gone", "0")
        await watched.until({"gone": "0"})

        proxy.refusals["configmaps"] = 410
        proxy.break_watches(WatchFault.CUT, of="configmaps")
        await cluster.delete(CONFIG_MAPS, namespace, "gone")
        proxy.refusals.clear()

        await eventually(lambda: any(each.key == (namespace, "gone") and each.new is None for each in watched.changes))


async def test_a_frozen_connection_is_given_up_and_made_anew(kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str):
    async with watching(kube, proxy, namespace, inactivity_seconds=0.5) as watched:
        await put(cluster, namespace, "a", "0")
        await watched.until({"a": "0"})

        proxy.freeze()
        await change(cluster, namespace, "a", "1")
        watches = len(proxy.asked)
        await eventually(lambda: len(proxy.asked) > watches)
        proxy.thaw()

        await watched.until({"a": "1"})


async def test_a_kind_that_nobody_changes_is_never_behind_and_no_problem(kube: KubeClient, proxy: ApiProxy, namespace: str):
    """Its watch says nothing at all, and is opened again and again.

    A watch that is not accepted within the time that it may be silent is another matter.
    """
    async with watching(kube, proxy, namespace, watch=Watch(API_SERVICES), inactivity_seconds=1.5) as watched:
        asked = len(proxy.asked)

        while len(proxy.asked) < asked + 3:
            assert not watched.is_behind
            assert watched.cache.sections[""].status.problem == ""
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("code", [401, 403, 404, 429, 500, 503])
async def test_refusals_pass(kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str, code: int):
    async with watching(kube, proxy, namespace) as watched:
        await put(cluster, namespace, "a", "0")
        await watched.until({"a": "0"})

        proxy.refusals["configmaps"] = code
        proxy.break_watches(WatchFault.CUT, of="configmaps")
        await change(cluster, namespace, "a", "1")
        asked = len(proxy.asked)
        await eventually(lambda: len(proxy.asked) > asked + 1)
        proxy.refusals.clear()

        await watched.until({"a": "1"})


async def test_a_watch_that_broke_is_behind_until_it_has_flown_again_for_a_while(
    kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str
):
    async with watching(kube, proxy, namespace) as watched:
        await put(cluster, namespace, "a", "0")
        await watched.until({"a": "0"})
        assert not watched.is_behind

        proxy.refusals["configmaps"] = 503
        proxy.break_watches(WatchFault.CUT, of="configmaps")
        await eventually(lambda: watched.is_behind)
        await change(cluster, namespace, "a", "1")
        flies_after = asyncio.get_running_loop().time()
        proxy.refusals.clear()
        await watched.until({"a": "1"})

        assert watched.is_behind_at(flies_after + CATCH_UP_SECONDS)
        await eventually(lambda: not watched.is_behind)


async def test_a_kind_that_answers_errors_is_waited_for_half_a_minute_only(
    kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str
):
    """An aggregated API that is down, a conversion webhook that fails: its parents go on with what was seen last."""
    async with watching(kube, proxy, namespace) as watched:
        await put(cluster, namespace, "a", "0")
        await watched.until({"a": "0"})
        proxy.refusals["configmaps"] = 503
        proxy.break_watches(WatchFault.CUT, of="configmaps")
        await eventually(lambda: watched.is_behind)

        watched.broke(seconds_ago=LONGEST_FREEZE_SECONDS - 1)

        assert watched.is_behind
        await eventually(lambda: not watched.is_behind)
        await eventually(lambda: "meanwhile what was seen last is used" in watched.cache.sections[""].status.problem)
        assert watched.texts() == {"a": "0"}
        proxy.refusals.clear()
        await eventually(lambda: not watched.cache.sections[""].status.problem)


async def test_a_first_list_that_took_several_tries_is_not_behind(kube: KubeClient, proxy: ApiProxy, namespace: str):
    proxy.refusals["configmaps"] = 429
    watched = Watched(proxy, namespace)
    watches = watches_of(kube, watched)
    async with asyncio.TaskGroup() as group:
        watches.start(WATCH, group)
        await eventually(lambda: sum(asked.path.endswith("/configmaps") for asked in proxy.asked) > 2)
        proxy.refusals.clear()

        await eventually(lambda: watched.cache.is_synced)

        assert not watched.is_behind
        watches.stop(WATCH.id)


async def test_a_watch_that_ends_in_good_order_is_never_behind(kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str):
    async with watching(kube, proxy, namespace) as watched:
        await put(cluster, namespace, "a", "0")
        await watched.until({"a": "0"})

        proxy.break_watches(WatchFault.END, of="configmaps")
        await change(cluster, namespace, "a", "1")
        await watched.until({"a": "1"})

        assert not watched.is_behind


NONSENSE = {
    "no metadata": b'{"type":"MODIFIED","object":{"kind":"ConfigMap"}}',
    "metadata that is none": b'{"type":"MODIFIED","object":{"metadata":["a"]}}',
    "no object": b'{"type":"MODIFIED","object":7}',
    "a type that nobody knows": b'{"type":"RENAMED","object":{"metadata":{"name":"a","uid":"u","resourceVersion":"1"}}}',
    "nested as deep as it gets": b'{"type":"MODIFIED","object":{"metadata":{"name":"a","uid":"u"},"data":'
    + b"[" * 5000
    + b"]" * 5000
    + b"}}",
    "no UTF-8": b'{"type":"MODIFIED","object":{"metadata":{"name":"a","uid":"u"},"data":{"text":"\xff\xfe"}}}',
    "half a character": b'{"type":"MODIFIED","object":{"metadata":{"name":"a","uid":"u"},"data":{"text":"\\ud800"}}}',
    "twenty megabytes of nothing": b'{"type":"MODIFIED","object":{"kind":"' + b"x" * 20_000_000 + b'"}}',
}


@pytest.mark.parametrize("what", NONSENSE)
async def test_nonsense_harms_no_object_and_ends_no_watch_for_long(
    kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str, what: str
):
    async with watching(kube, proxy, namespace) as watched:
        await put(cluster, namespace, "a", "0")
        await watched.until({"a": "0"})

        assert proxy.inject(NONSENSE[what] + b"\n", of="configmaps") == 1
        await change(cluster, namespace, "a", "1")

        await watched.until({"a": "1"})
        assert watched.lists() == 1


ERROR = '{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":"%s","message":"a bad day"}}'


@pytest.mark.parametrize("status", [(500, "InternalError"), (504, "Timeout"), (429, "TooManyRequests"), (410, "Gone"), (403, "Forbidden")])
async def test_an_error_in_the_middle_of_a_watch_ends_it_for_a_moment(
    kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str, status: tuple[int, str]
):
    """Whoever says that a version is too old, or that we may not watch, is asked for a new list."""
    async with watching(kube, proxy, namespace) as watched:
        await put(cluster, namespace, "a", "0")
        await watched.until({"a": "0"})

        proxy.inject((ERROR % status).encode() + b"\n", of="configmaps")
        await change(cluster, namespace, "a", "1")

        await watched.until({"a": "1"})
        assert watched.lists() == (2 if status[0] in {410, 403} else 1)


@pytest.mark.parametrize("streams_lists", [True, False])
async def test_objects_as_large_as_they_get_are_seen(
    kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str, streams_lists: bool
):
    proxy.streams_lists = streams_lists
    large = "\u00e9" * 500_000
    for name in ("a", "b", "c"):
        await put(cluster, namespace, name, large)
    async with watching(kube, proxy, namespace) as watched:
        assert watched.texts() == {"a": large, "b": large, "c": large}

        await change(cluster, namespace, "b", large[1:])
        await eventually(lambda: proxy.break_watches(WatchFault.CUT_WITHIN_A_LINE, of="configmaps") == 1)
        await change(cluster, namespace, "c", large[2:])

        await watched.until({"a": large, "b": large[1:], "c": large[2:]})


async def test_the_api_server_may_be_killed_and_come_back(kube: KubeClient, proxy: ApiProxy, plane: ControlPlane, namespace: str):
    async with watching(kube, proxy, namespace) as watched, Cluster.connect(plane) as before:
        await put(before, namespace, "a", "0")
        await watched.until({"a": "0"})

        await plane.apiserver.kill()
        await plane.apiserver.start()
        async with Cluster.connect(plane) as after:
            await change(after, namespace, "a", "1")

        await watched.until({"a": "1"})


async def test_whatever_happens_the_cache_ends_up_as_the_server_is(kube: KubeClient, proxy: ApiProxy, cluster: Cluster, namespace: str):
    """Objects come, change and go at random while the watch is broken in all ways, at random; each change is told as
    what it is.
    """
    dice = random.Random(4)
    async with watching(kube, proxy, namespace) as watched:
        there: dict[str, str] = {}
        for step in range(300):
            name = f"c{dice.randrange(12)}"
            if name not in there:
                await put(cluster, namespace, name, str(step))
            elif dice.random() < 0.3:
                await cluster.delete(CONFIG_MAPS, namespace, name)
                del there[name]
                continue
            else:
                await change(cluster, namespace, name, str(step))
            there[name] = str(step)
            if dice.random() < 0.15:
                proxy.break_watches(dice.choice(list(WatchFault)), of="configmaps")

        await watched.until(there)
    seen: dict[tuple[str, str], object] = {}
    for each in watched.changes:
        assert seen.get(each.key) is each.old
        seen[each.key] = each.new
