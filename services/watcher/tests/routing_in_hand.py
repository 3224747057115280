"""Caches, queue and router in hand: everything but the API server and the bus."""

import asyncio

from metaloop.common.job import JobKey
from metaloop.common.json import dumps
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.observation import CachedObservation
from metaloop.common.testing.clock import FakeClock
from metaloop.watcher.core.cache import ResourceCache
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.watch import Watch, WatchId
from metaloop.watcher.routing import Routing


class ServedInHand:
    """What the API server serves, as a test says."""

    def __init__(self) -> None:
        self.resources: dict[ResourceId, ResourceInfo] = {}


class RoutingInHand(Routing):
    """The parts of a watcher that route, over caches of which each is synced."""

    def __init__(self, *watched: ResourceInfo | Watch, limits: Limits | None = None) -> None:
        self.clock = FakeClock()
        self.served = ServedInHand()
        self.changed = asyncio.Event()
        super().__init__(shard="0", limits=limits or Limits(), served=self.served, changed=self.changed, clock=self.clock)
        for each in watched:
            self.sync(each)

    def sync(self, watched: ResourceInfo | Watch, *records: Record) -> ResourceCache:
        """Have a new cache for a watch, whose list was these records."""
        watch = watched if isinstance(watched, Watch) else Watch(watched)
        self.served.resources[watch.resource.id] = watch.resource
        if self.caches.get(watch.id) is not None:
            self.caches.close(watch.id)
        cache = self.caches.open(watch, now=self.clock())
        cache.begin_list()
        for each in records:
            cache.put(each)
        cache.end_list("1")
        return cache

    def start(self, instance: Instance, *, reason: str = "start") -> None:
        """Serve a controller, as the supervisor does."""
        self.router.show(instance.controller.id, dumps(instance.controller.raw))
        self.router.start(instance, reason=reason)

    def see(self, watched: ResourceInfo | Watch, record: Record) -> None:
        """An object is like this now."""
        change = self._cache(watched).put(record)
        if change is not None:
            self.router.take(change)

    def lose(self, watched: ResourceInfo | Watch, record: Record) -> None:
        """An object is gone."""
        change = self._cache(watched).remove(record)
        if change is not None:
            self.router.take(change)

    def marks(self) -> dict[JobKey, str]:
        """What waits to be run, and why."""
        return {entry.key: entry.mark.reason for entry in self.queue.entries() if entry.mark is not None}

    def take_marks(self) -> dict[JobKey, str]:
        """What waits to be run, and why; then nothing does."""
        marks = self.marks()
        for key in marks:
            self.queue.forget(key)
        return marks

    def observe(self, key: JobKey) -> CachedObservation:
        """What a claim shows of a unit of work that there is."""
        seen = self.observer.observe(key)
        assert isinstance(seen, CachedObservation), seen
        return seen

    def refusal(self, key: JobKey) -> str:
        """Why there is nothing to observe of a unit of work."""
        seen = self.observer.observe(key)
        assert not isinstance(seen, CachedObservation)
        return seen.reason

    def _cache(self, watched: ResourceInfo | Watch) -> ResourceCache:
        return self.caches[watched.id if isinstance(watched, Watch) else WatchId(watched.id)]
