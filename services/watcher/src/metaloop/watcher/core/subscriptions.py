"""Subscriptions to related objects: what each parent's customize hook asked for, and what that selects in the caches.

A subscription begins when a worker sends it, so nothing that happens after the hook's answer is missed. Where a
resource is not served, or its watch has not synced, the answer covers the rest, and the parent is marked again once
everything is there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, assert_never

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.selector import Labels, Selector
from metaloop.common.observation import CachedGroup, CachedRelated
from metaloop.common.related_query import Anywhere, InNamespace, InNamespacesWith, RelatedQuery
from metaloop.watcher.core.cache import ResourceCache
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.record import ObjectKey, Record
from metaloop.watcher.core.subscription_index import Subscription, SubscriptionIndex
from metaloop.watcher.core.watch import Scope, WatchId

NAMESPACES = ResourceId("v1", "namespaces")
_NAMESPACES_WATCH = WatchId(NAMESPACES)
_NO_LABELS: Labels = {}


class ServedResources(Protocol):
    """What the API server serves, as far as is known."""

    @property
    def resources(self) -> Mapping[ResourceId, ResourceInfo]:
        """All resources, as they are now."""
        ...


class Signal(Protocol):
    """Tells somebody to look again. An asyncio.Event is one."""

    def set(self) -> None:
        """Something changed."""
        ...


@dataclass(frozen=True, slots=True)
class ParentSubscriptions:
    """The subscriptions of one parent, and the fingerprint that the reconciler sent with them."""

    fingerprint: str
    subscriptions: tuple[Subscription, ...]
    queried: tuple[WatchId, ...]
    """What is queried, each watch once, in the order of the queries."""
    watches: tuple[WatchId, ...]
    """What has to be watched for them: what is queried, and namespaces where a query selects them by labels."""
    outside: tuple[RelatedQuery, ...]
    """The queries for objects in namespaces that are not watched. They are never answered."""


def _parent_subscriptions(
    key: JobKey, fingerprint: str, queries: Sequence[RelatedQuery], *, namespaces: Sequence[str]
) -> ParentSubscriptions:
    queried = tuple(dict.fromkeys(map(watch_of, queries)))
    of_namespaces = [_NAMESPACES_WATCH for query in queries if isinstance(query.where, InNamespacesWith) and not namespaces]
    return ParentSubscriptions(
        fingerprint=fingerprint,
        subscriptions=tuple(Subscription(key, query) for query in queries),
        queried=queried,
        watches=tuple(dict.fromkeys((*queried, *of_namespaces))),
        outside=tuple(query for query in queries if namespaces and is_outside(query, namespaces)),
    )


def is_outside(query: RelatedQuery, namespaces: Sequence[str]) -> bool:
    """Whether a query is for other namespaces than these, or for those with some labels, which nobody may list."""
    match query.where:
        case InNamespace(name):
            return name not in namespaces
        case InNamespacesWith():
            return True
        case Anywhere():
            return False
        case _:
            assert_never(query.where)


def outside_message(query: RelatedQuery, namespaces: Sequence[str]) -> str:
    """Why a query that is outside of the watched namespaces is not answered, for the author of the controller."""
    where = f"in the namespace {query.where.name}" if isinstance(query.where, InNamespace) else "in namespaces selected by labels"
    return (
        f"A customize hook asks for {query.resource} {where}: METALOOP_NAMESPACES restricts this watcher "
        f"to the namespaces {', '.join(namespaces)}"
    )


def watch_of(query: RelatedQuery) -> WatchId:
    """The watch whose objects a query selects from."""
    return WatchId(query.resource, Scope(labels=query.watched))


class RelatedSubscriptions:
    """The subscriptions of all parents, over the caches."""

    def __init__(self, caches: Caches, *, served: ServedResources, needs_changed: Signal) -> None:
        self._caches = caches
        self._served = served
        self._needs_changed = needs_changed
        """Set when other resources may have to be watched than before."""
        self._by_key: dict[JobKey, ParentSubscriptions] = {}
        self._by_watch: dict[WatchId, SubscriptionIndex] = {}
        self._incomplete: dict[JobKey, None] = {}
        """The parents whose last answer lacked a resource."""
        self._needs: dict[ControllerId, Counter[WatchId]] = {}
        """How many parents of each controller need each watch."""

    # -- what workers send ---------------------------------------------------------------------------------------------

    def subscribe(self, key: JobKey, fingerprint: str, queries: Sequence[RelatedQuery]) -> CachedRelated:
        """What `queries` select. From now on the parent is subscribed to exactly these."""
        former = self._by_key.get(key)
        if former is None or [subscription.query for subscription in former.subscriptions] != [*queries]:
            self.forget(key)
            self._remember(key, _parent_subscriptions(key, fingerprint, queries, namespaces=self._caches.namespaces))
        elif former.fingerprint != fingerprint:
            self._by_key[key] = replace(former, fingerprint=fingerprint)
        return self._select(key, self._by_key[key])

    def forget(self, key: JobKey) -> None:
        """End all subscriptions of a parent."""
        former = self._by_key.pop(key, None)
        if former is None:
            return
        self._incomplete.pop(key, None)
        self._count(key.controller, former.watches, -1)
        for subscription in former.subscriptions:
            watch = watch_of(subscription.query)
            index = self._by_watch[watch]
            index.remove(subscription)
            if not index:
                del self._by_watch[watch]

    def forget_controller(self, controller: ControllerId, *, unless: Callable[[JobKey], bool] = lambda _: False) -> None:
        """End the subscriptions of a controller's parents, except of those for which `unless` is true."""
        for key in [key for key in self._by_key if key.controller == controller and not unless(key)]:
            self.forget(key)

    # -- what is asked -------------------------------------------------------------------------------------------------

    def observe(self, key: JobKey) -> CachedRelated | None:
        """What a parent's subscriptions select now; None where it has none."""
        subscribed = self._by_key.get(key)
        return self._select(key, subscribed) if subscribed is not None else None

    def concerned_by(self, change: Change) -> set[JobKey]:
        """The parents that are subscribed to an object as it was before a change, or as it is now."""
        concerned: set[JobKey] = set()
        index = self._by_watch.get(change.watch.id)
        if index is not None:
            namespace_labels = self._labels_of(change.key[0])
            for labels in _labels_seen(change):
                concerned.update(index.subscribers_of(change.key, labels, namespace_labels))
        if change.watch.id == _NAMESPACES_WATCH and _labels(change.old) != _labels(change.new):
            concerned.update(self._concerned_by_namespace(change))
        return concerned

    def subscribers_of(self, resource: ResourceId) -> list[JobKey]:
        """The parents for whom a resource has to be watched."""
        return [key for key, subscribed in self._by_key.items() if any(watch.resource == resource for watch in subscribed.watches)]

    @property
    def watches(self) -> set[WatchId]:
        """Everything that has to be watched for some parent."""
        return {watch for needs in self._needs.values() for watch in needs}

    def watches_of(self, controller: ControllerId) -> Iterable[WatchId]:
        """What has to be watched for the parents of a controller."""
        return [*self._needs.get(controller, ())]

    def outside(self, controller: ControllerId) -> str:
        """What the parents of a controller ask for beyond the namespaces that are watched; empty where all are."""
        if not self._caches.namespaces:
            return ""
        asked = (query for key, each in self._by_key.items() if key.controller == controller for query in each.outside)
        query = next(asked, None)
        return outside_message(query, self._caches.namespaces) if query is not None else ""

    def take_answerable(self) -> list[JobKey]:
        """The parents whose last answer was incomplete and would be complete now. Each is returned once."""
        found = [key for key in self._incomplete if self._is_answerable(self._by_key[key])]
        for key in found:
            del self._incomplete[key]
        return found

    def all(self) -> Iterator[tuple[JobKey, ParentSubscriptions]]:
        """Every parent with its subscriptions."""
        return iter(self._by_key.items())

    # -- remembering ---------------------------------------------------------------------------------------------------

    def _remember(self, key: JobKey, subscribed: ParentSubscriptions) -> None:
        self._by_key[key] = subscribed
        if subscribed.outside:
            self._needs_changed.set()
        for subscription in subscribed.subscriptions:
            self._by_watch.setdefault(watch_of(subscription.query), SubscriptionIndex()).add(subscription)
        self._count(key.controller, subscribed.watches, 1)

    def _count(self, controller: ControllerId, watches: Iterable[WatchId], step: int) -> None:
        needs = self._needs.setdefault(controller, Counter())
        before = len(needs)
        for watch in watches:
            needs[watch] += step
            if not needs[watch]:
                del needs[watch]
        if len(needs) != before:
            self._needs_changed.set()
        if not needs:
            del self._needs[controller]

    # -- selecting -----------------------------------------------------------------------------------------------------

    def _select(self, key: JobKey, subscribed: ParentSubscriptions) -> CachedRelated:
        outside = {watch_of(query) for query in subscribed.outside}
        missing = [watch for watch in subscribed.watches if watch in outside or not self._is_ready(watch)]
        resources = tuple(dict.fromkeys(watch.resource for watch in missing))
        if missing:
            self._incomplete[key] = None
        elif self._incomplete:
            self._incomplete.pop(key, None)
        served = self._served.resources
        return CachedRelated(
            fingerprint=subscribed.fingerprint,
            groups=[self._group(watch, subscribed) for watch in subscribed.queried if watch not in missing],
            waiting=[served[resource] for resource in resources if resource in served],
            unknown=[resource for resource in resources if resource not in served],
        )

    def _is_answerable(self, subscribed: ParentSubscriptions) -> bool:
        return not subscribed.outside and all(map(self._is_ready, subscribed.watches))

    def _is_ready(self, watch: WatchId) -> bool:
        return self._caches.is_synced(watch) and watch.resource in self._served.resources

    def _group(self, watch: WatchId, subscribed: ParentSubscriptions) -> CachedGroup:
        cache = self._caches[watch]
        queries = [each.query for each in subscribed.subscriptions if watch_of(each.query) == watch]
        selected = {record.key: record for query in queries for record in self._selected(cache, query)}
        return CachedGroup(resource=cache.watch.resource, objects=[selected[key].raw for key in sorted(selected)])

    def _selected(self, cache: ResourceCache, query: RelatedQuery) -> Iterator[Record]:
        for key in self._candidates(cache, query):
            record = cache.objects.get(key)
            if record is None or not query.selects(name=key[1], labels=record.labels):
                continue
            if query.reaches(key[0], self._labels_of(key[0])):
                yield record

    def _candidates(self, cache: ResourceCache, query: RelatedQuery) -> Iterable[ObjectKey]:
        """A superset of the keys that `query` selects, and not much larger."""
        match query.where:
            case InNamespace(namespace) if cache.watch.resource.namespaced:
                if query.names:
                    return [(namespace, name) for name in query.names]
                return cache.index.in_namespace(namespace, query.labels)
            case InNamespacesWith(labels) if not query.names:
                namespaces = self._namespaces_with(labels)
                return (key for namespace in namespaces for key in cache.index.in_namespace(namespace, query.labels))
            case _:
                return cache.index.named(query.names) if query.names else cache.index.anywhere(query.labels)

    # -- namespaces ----------------------------------------------------------------------------------------------------

    def _namespaces_with(self, selector: Selector) -> Iterator[str]:
        cache = self._caches.get(_NAMESPACES_WATCH)
        for key in cache.index.anywhere(selector) if cache is not None else ():
            if selector.matches(self._labels_of(key[1])):
                yield key[1]

    def _labels_of(self, namespace: str) -> Labels:
        cache = self._caches.get(_NAMESPACES_WATCH)
        return _labels(cache.objects.get(("", namespace))) if namespace and cache is not None else _NO_LABELS

    def _concerned_by_namespace(self, change: Change) -> Iterator[JobKey]:
        """The parents whose queries begin or cease to reach a namespace by its labels, and select something in it."""
        namespace, before, now = change.key[1], _labels(change.old), _labels(change.new)
        for watch, index in self._by_watch.items():
            cache = self._caches.get(watch)
            for subscription in index.by_namespace_labels():
                query = subscription.query
                if query.reaches(namespace, before) != query.reaches(namespace, now) and _selects_any(cache, namespace, query):
                    yield subscription.key


def _selects_any(cache: ResourceCache | None, namespace: str, query: RelatedQuery) -> bool:
    if cache is None:
        return False
    keys = cache.index.in_namespace(namespace, query.labels)
    return any(query.selects(name=key[1], labels=cache.objects[key].labels) for key in keys)


def _labels(record: Record | None) -> Labels:
    return record.labels if record is not None else _NO_LABELS


def _labels_seen(change: Change) -> list[Labels]:
    """The labels that an object had before and has after a change, each once."""
    seen = [record.labels for record in (change.old, change.new) if record is not None]
    return seen[:1] if len(seen) > 1 and seen[0] is seen[1] else seen
