"""The running watches: one reflector and one cache for each, supervised on their own. Their events go to the router."""

import asyncio
from typing import Protocol

from metaloop.common.crashes import crash_logged
from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.cache import ResourceCache
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.record import Record, record_of
from metaloop.watcher.core.section import Section
from metaloop.watcher.core.watch import Watch, WatchId
from metaloop.watcher.errors import MalformedObject
from metaloop.watcher.reflector import Reflector, WatchSettings, forget_metrics
from metaloop.watcher.route import Router
from metaloop.watcher.routing import Routing

log = get_logger()

_RESTART_SECONDS = 1.0


class ChangeObserver(Protocol):
    """Takes the changes of one watch before they are routed."""

    def take(self, change: Change) -> None:
        """An object changed."""
        ...


class CacheSink:
    """Stores what the reflector of a section passes on in its cache, and routes the changes."""

    def __init__(  # noqa: PLR0913 - where changes come from, and where they go
        self,
        cache: ResourceCache,
        namespace: str,
        router: Router,
        *,
        observer: ChangeObserver | None,
        changed: asyncio.Event,
        field_manager: str,
    ) -> None:
        self._cache = cache
        self._namespace = namespace
        self._router = router
        self._observer = observer
        self._changed = changed
        self._field_manager = field_manager

    def begin_list(self) -> None:
        """A list begins."""
        self._cache.begin_list(self._namespace)

    def put(self, obj: JsonObject) -> None:
        """Store an object. Raises MalformedObject."""
        record = _record(_identified(obj, self._cache.watch.resource), field_manager=self._field_manager)
        self._route(self._cache.put(record))

    def remove(self, obj: JsonObject) -> None:
        """Remove an object. Raises MalformedObject."""
        self._route(self._cache.remove(_record(obj, field_manager=self._field_manager)))

    def end_list(self, version: str) -> None:
        """The list was complete."""
        for change in self._cache.end_list(version, self._namespace):
            self._route(change)
        self._changed.set()

    def progress(self, version: str) -> None:
        """Nothing happened up to this version but what was passed on."""
        self._cache.progress(version, self._namespace)

    def status_changed(self) -> None:
        """The watch's problem came, changed or went."""
        self._changed.set()

    def _route(self, change: Change | None) -> None:
        if change is None:
            return
        if self._observer is not None:
            self._observer.take(change)
        self._router.take(change)


def _record(obj: JsonObject, *, field_manager: str) -> Record:
    try:
        record = record_of(obj, field_manager=field_manager)
    except (TypeError, ValueError) as problem:  # JSON that cannot be written: nested too deep, broken surrogates
        raise MalformedObject(str(problem)) from problem
    if record is None:
        raise MalformedObject("an object without name or UID")
    return record


def _identified(obj: JsonObject, resource: ResourceInfo) -> JsonObject:
    """The object with its apiVersion and kind, which the items of a list lack."""
    obj.setdefault("apiVersion", resource.api_version)
    obj.setdefault("kind", resource.kind)
    return obj


class Watches:
    """All watches of this process. `start` and `stop` act at once; the tasks live in the group that is given."""

    def __init__(self, kube: KubeClient, routing: Routing, *, changed: asyncio.Event, settings: WatchSettings) -> None:
        self._kube = kube
        self._caches = routing.caches
        self._router = routing.router
        self._changed = changed
        """Set when a cache is synced, or a watch's problem comes or goes."""
        self._settings = settings
        self._reflectors: dict[WatchId, list[Reflector]] = {}
        """The reflectors of each watch: one for each section of its cache."""
        self._tasks: dict[WatchId, list[asyncio.Task[None]]] = {}
        self.restarting: set[WatchId] = set()
        """The watches that ended although nobody stopped them, and are about to be started again."""

    def start(self, watch: Watch, group: asyncio.TaskGroup, *, observer: ChangeObserver | None = None) -> None:
        """Start a watch that does not run. Its changes go to `observer`, if there is one, and to the router."""
        cache = self._caches.open(watch, now=asyncio.get_running_loop().time())
        self._reflectors[watch.id], self._tasks[watch.id] = [], []
        for section in cache.sections.values():
            reflector = self._reflector(cache, section, observer)
            self._reflectors[watch.id].append(reflector)
            self._tasks[watch.id].append(group.create_task(self._keep_running(reflector, section), name=f"keep watch {section.watch.id}"))

    def stop(self, watch: WatchId) -> None:
        """Stop a watch, and forget its objects."""
        for task in self._tasks.pop(watch):
            task.cancel()
        for section in self._caches[watch].sections.values():
            self.restarting.discard(section.watch.id)
            forget_metrics(section.watch.id)
        del self._reflectors[watch]
        self._caches.close(watch)

    def wake(self) -> None:
        """Have every watch that waits before its next try make it now."""
        for reflectors in self._reflectors.values():
            for reflector in reflectors:
                reflector.wake()

    def _reflector(self, cache: ResourceCache, section: Section, observer: ChangeObserver | None) -> Reflector:
        sink = CacheSink(
            cache,
            section.watch.scope.namespace,
            self._router,
            observer=observer,
            changed=self._changed,
            field_manager=self._settings.field_manager,
        )
        return Reflector(self._kube, section.watch, sink, status=section.status, settings=self._settings)

    async def _keep_running(self, reflector: Reflector, section: Section) -> None:
        """Run a reflector until the watch is stopped.

        One that fails, returns or is cancelled by mistake is started again, and takes no other with it.
        """
        watch = section.watch
        while True:
            with crash_logged("watch.crashed", resource=str(watch.id)):
                # In a task of its own: a cancellation that is meant for it does not end this loop.
                async with asyncio.TaskGroup() as group:
                    group.create_task(reflector.run(), name=f"watch {watch.id}")
                log.error("watch.ended_unasked", **{fields.RESOURCE: str(watch.id)})
            section.status.catch_up.broke(asyncio.get_running_loop().time())
            self.restarting.add(watch.id)
            await asyncio.sleep(_RESTART_SECONDS)
            self.restarting.discard(watch.id)
