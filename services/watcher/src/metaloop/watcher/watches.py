"""The running watches: one reflector and one cache for each resource that somebody wants, each supervised on its own."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.cache import ResourceCache
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.record import Record, record_of
from metaloop.watcher.errors import MalformedObject
from metaloop.watcher.watch import Reflector, WatchSettings

log = get_logger()

OnChange: TypeAlias = Callable[[Change], None]
_RESTART_SECONDS = 1.0


class CacheSink:
    """Puts what a reflector tells into a cache, and hands on what is news."""

    def __init__(self, cache: ResourceCache, *, field_manager: str, on_change: OnChange, on_synced: Callable[[], None]) -> None:
        self._cache = cache
        self._field_manager = field_manager
        self._on_change = on_change
        self._on_synced = on_synced

    def begin_list(self) -> None:
        """A list of everything begins."""
        self._cache.begin_list()

    def put(self, obj: JsonObject) -> None:
        """The object is like this now. Raises MalformedObject."""
        self._tell(self._cache.put(_record(_identified(obj, self._cache.resource), field_manager=self._field_manager)))

    def remove(self, obj: JsonObject) -> None:
        """The object is gone. Raises MalformedObject."""
        self._tell(self._cache.remove(_record(obj, field_manager=self._field_manager)))

    def end_list(self, version: str) -> None:
        """The list was whole."""
        for change in self._cache.end_list(version):
            self._tell(change)
        self._on_synced()

    def progress(self, version: str) -> None:
        """Nothing happened up to this version but what was told."""
        self._cache.progress(version)

    def _tell(self, change: Change | None) -> None:
        if change is not None:
            self._on_change(change)


def _record(obj: JsonObject, *, field_manager: str) -> Record:
    try:
        record = record_of(obj, field_manager=field_manager)
    except (TypeError, ValueError) as problem:  # JSON that can be read and not written: nested too deep, broken surrogates
        raise MalformedObject(str(problem)) from problem
    if record is None:
        raise MalformedObject("an object without name or UID")
    return record


def _identified(obj: JsonObject, resource: ResourceInfo) -> JsonObject:
    """The items of a list don't say what they are."""
    obj.setdefault("apiVersion", resource.api_version)
    obj.setdefault("kind", resource.kind)
    return obj


@dataclass(slots=True, eq=False)
class _Watch:
    reflector: Reflector
    task: asyncio.Task[None]


class Watches:
    """All watches of this process. `start` and `stop` act at once; the tasks live in the group that is given."""

    def __init__(self, kube: KubeClient, *, settings: WatchSettings, on_change: OnChange, on_news: Callable[[], None]) -> None:
        self.caches: dict[ResourceId, ResourceCache] = {}
        self._kube = kube
        self._settings = settings
        self._on_change = on_change
        self._on_news = on_news
        """Called when a cache is synced, or a watch's problem came or went."""
        self._watches: dict[ResourceId, _Watch] = {}

    def start(self, resource: ResourceInfo, group: asyncio.TaskGroup) -> None:
        """Begin to watch a resource that isn't watched yet."""
        cache = self.caches[resource.id] = ResourceCache(resource)
        sink = CacheSink(cache, field_manager=self._settings.field_manager, on_change=self._on_change, on_synced=self._on_news)
        reflector = Reflector(self._kube, resource, sink, settings=self._settings)
        reflector.on_problem = self._on_news
        task = group.create_task(_supervised(reflector, resource), name=f"watch {resource.id}")
        self._watches[resource.id] = _Watch(reflector, task)

    def stop(self, resource: ResourceId) -> None:
        """Watch a resource no longer, and forget its objects."""
        self._watches.pop(resource).task.cancel()
        del self.caches[resource]

    def problem(self, resource: ResourceId) -> str:
        """What keeps a resource from being watched now; empty while all is well, and before its watch was started."""
        watch = self._watches.get(resource)
        return watch.reflector.problem if watch is not None else ""

    def silent_seconds(self, resource: ResourceId) -> float:
        """How long ago the API server said anything about a resource, a bookmark at the least."""
        return asyncio.get_running_loop().time() - self._watches[resource].reflector.heard_at

    def is_behind(self, resource: ResourceId) -> bool:
        """Whether something that happened to a resource may not have been seen, since its watch broke a moment ago."""
        watch = self._watches.get(resource)
        return watch is not None and watch.reflector.catch_up.is_behind(asyncio.get_running_loop().time())

    def has_spoken(self, resource: ResourceId, *, within_seconds: float) -> bool:
        """Whether the API server said anything about a resource lately; one that isn't watched can't be waited for."""
        return resource not in self._watches or self.silent_seconds(resource) < within_seconds

    def is_refused(self, resource: ResourceId) -> bool:
        """Whether the API server doesn't let us watch a resource now: it isn't there, or we may not."""
        return self._watches[resource].reflector.is_refused

    def is_synced(self, resource: ResourceId) -> bool:
        """Whether a whole list of the resource was seen."""
        cache = self.caches.get(resource)
        return cache is not None and cache.is_synced

    def wake(self) -> None:
        """Have every watch that waits before its next try make it now."""
        for watch in self._watches.values():
            watch.reflector.wake()


async def _supervised(reflector: Reflector, resource: ResourceInfo) -> None:
    """Run a reflector for ever. One that dies of something unforeseen takes no other with it."""
    while True:
        try:
            await reflector.run()
        except Exception as error:  # the top of this watch's loop: its failure is its own
            log.exception("watch.crashed", **{fields.RESOURCE: str(resource.id), fields.ERROR: repr(error)})
            await asyncio.sleep(_RESTART_SECONDS)
