"""The caches of all watches, shared by everything that reads what the cluster holds."""

from collections.abc import Iterable, Iterator, Sequence

from metaloop.common.objects.resource import ResourceId
from metaloop.common.report import Write
from metaloop.watcher.core.cache import ResourceCache
from metaloop.watcher.core.record import ObjectKey, Record
from metaloop.watcher.core.watch import Watch, WatchId


class Caches:
    """One cache for each watch."""

    def __init__(self, *, namespaces: Sequence[str] = ()) -> None:
        self.namespaces = tuple(namespaces)
        """The namespaces that are watched; empty: all."""
        self._by_id: dict[WatchId, ResourceCache] = {}
        self._by_resource: dict[ResourceId, tuple[ResourceCache, ...]] = {}
        """The same by resource; no tuple is empty."""

    def open(self, watch: Watch, *, now: float) -> ResourceCache:
        """A new, empty cache for a watch that has none."""
        cache = self._by_id[watch.id] = ResourceCache(watch, now=now, namespaces=self.namespaces)
        self._by_resource[watch.resource.id] = (*self._by_resource.get(watch.resource.id, ()), cache)
        return cache

    def close(self, watch: WatchId) -> None:
        """Forget the cache of a watch, and its objects."""
        closed = self._by_id.pop(watch)
        rest = tuple(cache for cache in self._by_resource[watch.resource] if cache is not closed)
        if rest:
            self._by_resource[watch.resource] = rest
        else:
            del self._by_resource[watch.resource]

    def __getitem__(self, watch: WatchId) -> ResourceCache:
        return self._by_id[watch]

    def __iter__(self) -> Iterator[ResourceCache]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, watch: WatchId) -> ResourceCache | None:
        """The cache of a watch; None where there is none."""
        return self._by_id.get(watch)

    def lookup(self, watch: WatchId, key: ObjectKey) -> Record | None:
        """An object as it is cached; None where it is not, or nobody watches it."""
        cache = self._by_id.get(watch)
        return cache.objects.get(key) if cache is not None else None

    # -- how far they have come ----------------------------------------------------------------------------------------

    def has_seen(self, write: Write) -> bool:
        """Whether every cache that will show a write is no older than it; also where the resource is not watched.

        A watch within other labels than those that the write names may never show it.
        """
        caches = self._by_resource.get(write.resource, ())
        return all(cache.has_seen(write) for cache in caches if cache.watch.scope.labels in {"", write.watched})

    def is_silent(self, resource: ResourceId, *, since: float) -> bool:
        """Whether a watch of the resource has heard nothing since then, so that awaited events may still come."""
        return any(cache.heard_at <= since for cache in self._by_resource.get(resource, ()))

    def is_behind(self, watches: Iterable[WatchId], *, now: float) -> bool:
        """Whether events of one of these watches may have been missed, since it broke a moment ago."""
        for watch in watches:  # asked twice in each sync: a generator would take twice as long
            cache = self._by_id.get(watch)
            if cache is not None and (cache.whole.status.catch_up if cache.whole else cache).is_behind(now):
                return True
        return False

    def is_synced(self, watch: WatchId) -> bool:
        """Whether a whole list was seen."""
        cache = self._by_id.get(watch)
        return cache is not None and cache.is_synced

    def problem(self, watch: WatchId) -> str:
        """What prevents a watch from watching now; empty while all is well, and before it started."""
        cache = self._by_id.get(watch)
        return cache.problem if cache is not None else ""
