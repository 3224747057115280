"""Subscriptions to related objects: what each parent's customize hook asked for, and what that selects in the caches.

A subscription begins when a worker sends it, so nothing that happens after the hook's answer is missed. Where a resource is
not served, or its watch has not synced, the answer covers the rest, and the parent is marked again once everything is there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.selector import Labels, Selector
from metaloop.common.observation import CachedGroup, CachedRelated
from metaloop.common.related_query import InNamespace, InNamespacesWith, RelatedQuery
from metaloop.watcher.cache import ResourceCache
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.record import ObjectKey, Record
from metaloop.watcher.core.subscription_index import Subscription, SubscriptionIndex

NAMESPACES = ResourceId("v1", "namespaces")
_NO_LABELS: Labels = {}


@dataclass(frozen=True, slots=True)
class ParentSubscriptions:
    """The subscriptions of one parent, and the fingerprint that the reconciler sent with them."""

    fingerprint: str
    subscriptions: tuple[Subscription, ...]

    @property
    def resources(self) -> tuple[ResourceId, ...]:
        """The resources that have to be watched for them, each once, in the order of the queries."""
        selected = dict.fromkeys(subscription.query.resource for subscription in self.subscriptions)
        if any(isinstance(subscription.query.where, InNamespacesWith) for subscription in self.subscriptions):
            selected[NAMESPACES] = None
        return tuple(selected)


def _nobody_listens() -> None:
    """The listener where nobody starts watches."""


class RelatedSubscriptions:
    """The subscriptions of all parents, over the caches."""

    def __init__(self, caches: Mapping[ResourceId, ResourceCache], *, served: Callable[[], Mapping[ResourceId, ResourceInfo]]) -> None:
        self._caches = caches
        self._served = served
        self._by_key: dict[JobKey, ParentSubscriptions] = {}
        self._by_resource: dict[ResourceId, SubscriptionIndex] = {}
        self._incomplete: dict[JobKey, None] = {}
        """The parents whose last answer lacked a resource."""
        self._resource_counts: dict[ControllerId, Counter[ResourceId]] = {}
        """How many parents of each controller need each resource."""
        self.on_change: Callable[[], None] = _nobody_listens
        """Called when other resources may be needed than before."""

    # -- what workers send -----------------------------------------------------------------------------------------------------------

    def subscribe(self, key: JobKey, fingerprint: str, queries: Sequence[RelatedQuery]) -> CachedRelated:
        """What `queries` select. From now on the parent is subscribed to exactly these."""
        former = self._by_key.get(key)
        if former is None or [subscription.query for subscription in former.subscriptions] != [*queries]:
            self.forget(key)
            self._remember(key, ParentSubscriptions(fingerprint, tuple(Subscription(key, query) for query in queries)))
        elif former.fingerprint != fingerprint:
            self._by_key[key] = ParentSubscriptions(fingerprint, former.subscriptions)
        return self._select(key, self._by_key[key])

    def forget(self, key: JobKey) -> None:
        """End all subscriptions of a parent."""
        former = self._by_key.pop(key, None)
        if former is None:
            return
        self._incomplete.pop(key, None)
        self._count(key.controller, former.resources, -1)
        for subscription in former.subscriptions:
            index = self._by_resource[subscription.query.resource]
            index.remove(subscription)
            if not index:
                del self._by_resource[subscription.query.resource]

    def forget_controller(self, controller: ControllerId, *, unless: Callable[[JobKey], bool] = lambda _: False) -> None:
        """End the subscriptions of a controller's parents, except of those for which `unless` is true."""
        for key in [key for key in self._by_key if key.controller == controller and not unless(key)]:
            self.forget(key)

    # -- what is asked ---------------------------------------------------------------------------------------------------------------

    def observe(self, key: JobKey) -> CachedRelated | None:
        """What a parent's subscriptions select now; None where it has none."""
        subscribed = self._by_key.get(key)
        return self._select(key, subscribed) if subscribed is not None else None

    def concerned_by(self, change: Change) -> set[JobKey]:
        """The parents that are subscribed to an object as it was before a change, or as it is now."""
        concerned: set[JobKey] = set()
        index = self._by_resource.get(change.resource.id)
        if index is not None:
            labels = self._labels_of(change.key[0])
            for record in (change.old, change.new):
                if record is not None:
                    concerned.update(index.subscribers_of(record.key, record.labels, labels))
        if change.resource.id == NAMESPACES and _labels(change.old) != _labels(change.new):
            concerned.update(self._concerned_by_namespace(change))
        return concerned

    def subscribers_of(self, resource: ResourceId) -> list[JobKey]:
        """The parents for whom a resource has to be watched."""
        return [key for key, subscribed in self._by_key.items() if resource in subscribed.resources]

    @property
    def resources(self) -> set[ResourceId]:
        """Every resource that has to be watched for some parent."""
        return {resource for counts in self._resource_counts.values() for resource in counts}

    def resources_of(self, controller: ControllerId) -> Iterable[ResourceId]:
        """The resources that have to be watched for the parents of a controller."""
        return self._resource_counts.get(controller, ())

    def take_answerable(self) -> list[JobKey]:
        """The parents whose last answer was incomplete and would be complete now. Each is returned once."""
        found = [key for key in self._incomplete if all(self._is_ready(resource) for resource in self._by_key[key].resources)]
        for key in found:
            del self._incomplete[key]
        return found

    def all(self) -> Iterator[tuple[JobKey, ParentSubscriptions]]:
        """Every parent with its subscriptions."""
        return iter(self._by_key.items())

    # -- remembering -----------------------------------------------------------------------------------------------------------------

    def _remember(self, key: JobKey, subscribed: ParentSubscriptions) -> None:
        self._by_key[key] = subscribed
        for subscription in subscribed.subscriptions:
            self._by_resource.setdefault(subscription.query.resource, SubscriptionIndex()).add(subscription)
        self._count(key.controller, subscribed.resources, 1)

    def _count(self, controller: ControllerId, resources: Iterable[ResourceId], step: int) -> None:
        counts = self._resource_counts.setdefault(controller, Counter())
        before = len(counts)
        for resource in resources:
            counts[resource] += step
            if not counts[resource]:
                del counts[resource]
        if len(counts) != before:
            self.on_change()
        if not counts:
            del self._resource_counts[controller]

    # -- selecting -------------------------------------------------------------------------------------------------------------------

    def _select(self, key: JobKey, subscribed: ParentSubscriptions) -> CachedRelated:
        served = self._served()
        missing = [resource for resource in subscribed.resources if not self._is_ready(resource)]
        if missing:
            self._incomplete[key] = None
        else:
            self._incomplete.pop(key, None)
        resources = dict.fromkeys(subscription.query.resource for subscription in subscribed.subscriptions)
        return CachedRelated(
            fingerprint=subscribed.fingerprint,
            groups=[self._group(resource, subscribed) for resource in resources if resource not in missing],
            waiting=[served[resource] for resource in missing if resource in served],
            unknown=[resource for resource in missing if resource not in served],
        )

    def _is_ready(self, resource: ResourceId) -> bool:
        cache = self._caches.get(resource)
        return cache is not None and cache.is_synced and resource in self._served()

    def _group(self, resource: ResourceId, subscribed: ParentSubscriptions) -> CachedGroup:
        cache = self._caches[resource]
        selected: dict[ObjectKey, Record] = {}
        for subscription in subscribed.subscriptions:
            if subscription.query.resource == resource:
                selected.update((record.key, record) for record in self._selected(cache, subscription.query))
        return CachedGroup(resource=cache.resource, objects=[selected[key].raw for key in sorted(selected)])

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
            case InNamespace(namespace) if cache.resource.namespaced:
                if query.names:
                    return [(namespace, name) for name in query.names]
                return cache.index.in_namespace(namespace, query.labels)
            case InNamespacesWith(labels) if not query.names:
                namespaces = self._namespaces_with(labels)
                return (key for namespace in namespaces for key in cache.index.in_namespace(namespace, query.labels))
            case _:
                return cache.index.named(query.names) if query.names else cache.index.anywhere(query.labels)

    # -- namespaces ------------------------------------------------------------------------------------------------------------------

    def _namespaces_with(self, selector: Selector) -> Iterator[str]:
        cache = self._caches.get(NAMESPACES)
        for key in cache.index.anywhere(selector) if cache is not None else ():
            if selector.matches(self._labels_of(key[1])):
                yield key[1]

    def _labels_of(self, namespace: str) -> Labels:
        cache = self._caches.get(NAMESPACES)
        return _labels(cache.objects.get(("", namespace))) if namespace and cache is not None else _NO_LABELS

    def _concerned_by_namespace(self, change: Change) -> Iterator[JobKey]:
        """The parents whose queries begin or cease to reach a namespace by its labels, and select something in it."""
        namespace, before, now = change.key[1], _labels(change.old), _labels(change.new)
        for resource, index in self._by_resource.items():
            cache = self._caches.get(resource)
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
