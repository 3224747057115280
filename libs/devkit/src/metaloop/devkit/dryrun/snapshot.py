"""The watcher's view of one parent. Lists fill its caches instead of watches."""

from asyncio import Event
from collections.abc import Iterable, Mapping

from metaloop.common.api import PAUSED_ANNOTATION
from metaloop.common.api.instructions import is_paused
from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.errors import Unavailable
from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.observation import CachedGrant, Gone, Granted, Related, related_from_wire, reply_from_bytes, reply_to_bytes
from metaloop.common.related_query import InNamespace, InNamespacesWith
from metaloop.devkit.errors import NothingToPlan
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.observer import Observer
from metaloop.watcher.core.record import record_of
from metaloop.watcher.core.running import RunningControllers
from metaloop.watcher.core.subscriptions import NAMESPACES, RelatedSubscriptions
from metaloop.watcher.core.watch import ALL, Scope, Watch

_PAGE_SIZE = "500"
_LEASE_SECONDS = 3600.0


class ClusterSnapshot:
    """The part of a cluster that the sync of one parent depends on, as it is now."""

    def __init__(self, kube: KubeClient, served: Mapping[ResourceId, ResourceInfo], *, field_manager: str) -> None:
        self._kube = kube
        self._served = served
        self._field_manager = field_manager
        self._caches = Caches()
        self._running = RunningControllers(self._caches)
        self._subscriptions = RelatedSubscriptions(self._caches, served=self, needs_changed=Event())
        self._observer = Observer(self._running, self._caches, subscriptions=self._subscriptions)
        self._kind = ""
        """The kind of the observed parent."""
        self.parts: list[JobKey] = []
        """The parts of the observed parent, for kinds whose parents have any."""

    @property
    def resources(self) -> Mapping[ResourceId, ResourceInfo]:
        """What the API server serves."""
        return self._served

    async def observed(self, instance: Instance, controller: JsonObject, info: ResourceInfo, parent: JsonObject) -> Granted:
        """The grant that a claim on the parent would get if nothing were paused.

        Raises NothingToPlan if the controller does not serve the parent.
        """
        controller, parent = unpaused(controller), unpaused(parent)
        namespace, self._kind = unstructured.namespace(parent), info.kind
        for parents in instance.parents:
            self._fill(parents.watch, [parent] if parents.watch.resource.id == info.id else [])
        for watch in {group.watch.id: group.watch for group in instance.groups}.values():
            if watch.resource.id != info.id:
                self._fill(watch, await self._listed(watch.resource, namespace))
        self._running.show(instance.controller.id, dumps(controller))
        self.parts = [key for key in self._running.start(instance) if key.part]
        return self.granted(JobKey(instance.controller.id, info.id, namespace, unstructured.name(parent)))

    def granted(self, key: JobKey) -> Granted:
        """The grant that a claim on the observed parent, or on one of its `parts`, would get. Raises NothingToPlan."""
        observation = self._observer.observe(key)
        if isinstance(observation, Gone):
            name = "/".join(filter(None, (key.namespace, key.name)))
            raise NothingToPlan(f"{key.controller} does not serve {self._kind} {name}: {observation.reason}")
        granted = reply_from_bytes(reply_to_bytes(CachedGrant(observation=observation, lease="plan", lease_seconds=_LEASE_SECONDS)))
        if not isinstance(granted, Granted):
            raise Unavailable("the listed objects can't be read")
        return granted

    async def related(self, shard: str, request: RelatedRequest) -> Related:
        """The objects that the queries of a customize hook select."""
        del shard
        for query in request.queries:
            space = query.where.name if isinstance(query.where, InNamespace) else ""
            await self._list(query.resource, space, scope=Scope(labels=query.watched))
            if isinstance(query.where, InNamespacesWith):
                await self._list(NAMESPACES, "")
        found = self._subscriptions.subscribe(request.key, request.fingerprint, request.queries)
        return related_from_wire(loads(found.to_bytes()))

    async def _list(self, resource: ResourceId, namespace: str, *, scope: Scope = ALL) -> None:
        """Add the objects that are queried to the cache of their scope."""
        info = self._served.get(resource)
        if info is not None:
            self._fill(Watch(info, scope), await self._listed(info, namespace, labels=scope.labels))

    def _fill(self, watch: Watch, objects: Iterable[JsonObject]) -> None:
        cache, info = self._caches.get(watch.id) or self._caches.open(watch, now=0.0), watch.resource
        cache.end_list("")
        for obj in objects:
            obj.setdefault("apiVersion", info.api_version)
            obj.setdefault("kind", info.kind)
            record = record_of(obj, field_manager=self._field_manager)
            if record is not None:
                cache.put(record)

    async def _listed(self, info: ResourceInfo, namespace: str, *, labels: str = "") -> list[JsonObject]:
        found: list[JsonObject] = []
        selection = {"labelSelector": labels} if labels else {}
        params = {"limit": _PAGE_SIZE, **selection}
        while True:
            page = await self._kube.list_page(info, namespace if info.namespaced else "", params)
            found += unstructured.child_objects(page, "items")
            resume = unstructured.text(unstructured.metadata(page), "continue")
            if not resume:
                return found
            params = {"limit": _PAGE_SIZE, "continue": resume, **selection}


def unpaused(obj: JsonObject) -> JsonObject:
    """A parent or a controller without the annotation that pauses it. A plan shows what happens after the pause."""
    if not is_paused(obj):
        return obj
    metadata = unstructured.metadata(obj)
    annotations = {key: value for key, value in unstructured.child_object(metadata, "annotations").items() if key != PAUSED_ANNOTATION}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}
