"""Remembers which related objects each parent's customize hook asked to follow, and finds them.

A parent's interests are remembered from the moment that a worker tells them, so that nothing that happens after the answer is missed. What
can't be answered yet, since a resource isn't served or its watch has not synced, is answered as far as it can be, and the parent is looked at again
as soon as the rest is there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from metaloop.common.interest import InNamespace, InNamespacesWith, Interest
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.selector import Labels, Selector
from metaloop.common.observation import CachedGroup, CachedRelated
from metaloop.watcher.cache import ResourceCache
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.followers import Follower, Followers
from metaloop.watcher.core.record import ObjectKey, Record

NAMESPACES = ResourceId("v1", "namespaces")
_NO_LABELS: Labels = {}


@dataclass(frozen=True, slots=True)
class Followed:
    """What one parent follows, and what the reconciler calls it."""

    fingerprint: str
    followers: tuple[Follower, ...]

    @property
    def resources(self) -> tuple[ResourceId, ...]:
        """All resources that have to be watched for it, each once: first those that are followed, as they were first named."""
        followed = dict.fromkeys(follower.interest.resource for follower in self.followers)
        if any(isinstance(follower.interest.where, InNamespacesWith) for follower in self.followers):
            followed[NAMESPACES] = None
        return tuple(followed)


def _nobody_listens() -> None:
    """The listener where nobody starts watches."""


class Interests:
    """All interests of all parents, over the caches."""

    def __init__(self, caches: Mapping[ResourceId, ResourceCache], *, served: Callable[[], Mapping[ResourceId, ResourceInfo]]) -> None:
        self._caches = caches
        self._served = served
        self._followed: dict[JobKey, Followed] = {}
        self._by_resource: dict[ResourceId, Followers] = {}
        self._awaiting: dict[JobKey, None] = {}
        """The parents that were told that something is missing."""
        self._needs: dict[ControllerId, Counter[ResourceId]] = {}
        """How many parents of each controller need each resource."""
        self.on_change: Callable[[], None] = _nobody_listens
        """Called when other resources may be needed than before."""

    # -- what workers tell -----------------------------------------------------------------------------------------------------------

    def follow(self, key: JobKey, fingerprint: str, interests: Sequence[Interest]) -> CachedRelated:
        """Have a parent follow exactly these interests from now on; what they select."""
        former = self._followed.get(key)
        if former is None or [follower.interest for follower in former.followers] != [*interests]:
            self.forget(key)
            self._remember(key, Followed(fingerprint, tuple(Follower(key, interest) for interest in interests)))
        elif former.fingerprint != fingerprint:
            self._followed[key] = Followed(fingerprint, former.followers)
        return self._select(key, self._followed[key])

    def forget(self, key: JobKey) -> None:
        """Have a parent follow nothing, and nothing be remembered of it."""
        followed = self._followed.pop(key, None)
        if followed is None:
            return
        self._awaiting.pop(key, None)
        self._count(key.controller, followed.resources, -1)
        for follower in followed.followers:
            followers = self._by_resource[follower.interest.resource]
            followers.remove(follower)
            if not followers:
                del self._by_resource[follower.interest.resource]

    def forget_controller(self, controller: ControllerId, *, unless: Callable[[JobKey], bool] = lambda _: False) -> None:
        """Have the parents of a controller follow nothing, but those that `unless` is true of."""
        for key in [key for key in self._followed if key.controller == controller and not unless(key)]:
            self.forget(key)

    # -- what is asked ---------------------------------------------------------------------------------------------------------------

    def observe(self, key: JobKey) -> CachedRelated | None:
        """What a parent's interests select now; None where none were told."""
        followed = self._followed.get(key)
        return self._select(key, followed) if followed is not None else None

    def concerned_by(self, change: Change) -> set[JobKey]:
        """The parents that follow an object as it was before a change, or as it is now."""
        concerned: set[JobKey] = set()
        followers = self._by_resource.get(change.resource.id)
        if followers is not None:
            labels = self._labels_of(change.key[0])
            for record in (change.old, change.new):
                if record is not None:
                    concerned.update(followers.of(record.key, record.labels, labels))
        if change.resource.id == NAMESPACES and _labels(change.old) != _labels(change.new):
            concerned.update(self._concerned_by_namespace(change))
        return concerned

    def followers_of(self, resource: ResourceId) -> list[JobKey]:
        """The parents for whom a resource has to be watched."""
        return [key for key, followed in self._followed.items() if resource in followed.resources]

    @property
    def resources(self) -> set[ResourceId]:
        """Everything that has to be watched for somebody."""
        return {resource for needs in self._needs.values() for resource in needs}

    def resources_of(self, controller: ControllerId) -> Iterable[ResourceId]:
        """What has to be watched for the parents of a controller."""
        return self._needs.get(controller, ())

    def take_answerable(self) -> list[JobKey]:
        """The parents that were told that something is missing, and for whom all is there by now; each is told once."""
        found = [key for key in self._awaiting if all(self._is_ready(resource) for resource in self._followed[key].resources)]
        for key in found:
            del self._awaiting[key]
        return found

    def all(self) -> Iterator[tuple[JobKey, Followed]]:
        """What every parent follows."""
        return iter(self._followed.items())

    # -- remembering -----------------------------------------------------------------------------------------------------------------

    def _remember(self, key: JobKey, followed: Followed) -> None:
        self._followed[key] = followed
        for follower in followed.followers:
            self._by_resource.setdefault(follower.interest.resource, Followers()).add(follower)
        self._count(key.controller, followed.resources, 1)

    def _count(self, controller: ControllerId, resources: Iterable[ResourceId], step: int) -> None:
        needs = self._needs.setdefault(controller, Counter())
        before = len(needs)
        for resource in resources:
            needs[resource] += step
            if not needs[resource]:
                del needs[resource]
        if len(needs) != before:
            self.on_change()
        if not needs:
            del self._needs[controller]

    # -- selecting -------------------------------------------------------------------------------------------------------------------

    def _select(self, key: JobKey, followed: Followed) -> CachedRelated:
        served = self._served()
        missing = [resource for resource in followed.resources if not self._is_ready(resource)]
        if missing:
            self._awaiting[key] = None
        else:
            self._awaiting.pop(key, None)
        resources = dict.fromkeys(follower.interest.resource for follower in followed.followers)
        return CachedRelated(
            fingerprint=followed.fingerprint,
            groups=[self._group(resource, followed) for resource in resources if resource not in missing],
            waiting=[served[resource] for resource in missing if resource in served],
            unknown=[resource for resource in missing if resource not in served],
        )

    def _is_ready(self, resource: ResourceId) -> bool:
        cache = self._caches.get(resource)
        return cache is not None and cache.is_synced and resource in self._served()

    def _group(self, resource: ResourceId, followed: Followed) -> CachedGroup:
        cache = self._caches[resource]
        selected: dict[ObjectKey, Record] = {}
        for follower in followed.followers:
            if follower.interest.resource == resource:
                selected.update((record.key, record) for record in self._selected(cache, follower.interest))
        return CachedGroup(resource=cache.resource, objects=[selected[key].raw for key in sorted(selected)])

    def _selected(self, cache: ResourceCache, interest: Interest) -> Iterator[Record]:
        for key in self._candidates(cache, interest):
            record = cache.objects.get(key)
            if record is None or not interest.selects(name=key[1], labels=record.labels):
                continue
            if interest.reaches(key[0], self._labels_of(key[0])):
                yield record

    def _candidates(self, cache: ResourceCache, interest: Interest) -> Iterable[ObjectKey]:
        """A superset of the keys that an interest selects, of about their number."""
        match interest.where:
            case InNamespace(namespace) if cache.resource.namespaced:
                if interest.names:
                    return [(namespace, name) for name in interest.names]
                return cache.places.in_namespace(namespace, interest.labels)
            case InNamespacesWith(labels) if not interest.names:
                spaces = self._namespaces_with(labels)
                return (key for space in spaces for key in cache.places.in_namespace(space, interest.labels))
            case _:
                return cache.places.named(interest.names) if interest.names else cache.places.anywhere(interest.labels)

    # -- namespaces ------------------------------------------------------------------------------------------------------------------

    def _namespaces_with(self, selector: Selector) -> Iterator[str]:
        cache = self._caches.get(NAMESPACES)
        for key in cache.places.anywhere(selector) if cache is not None else ():
            if selector.matches(self._labels_of(key[1])):
                yield key[1]

    def _labels_of(self, namespace: str) -> Labels:
        cache = self._caches.get(NAMESPACES)
        return _labels(cache.objects.get(("", namespace))) if namespace and cache is not None else _NO_LABELS

    def _concerned_by_namespace(self, change: Change) -> Iterator[JobKey]:
        """The parents that look into a namespace for its labels, and did not before, or no longer do, if they find anything there."""
        namespace, before, now = change.key[1], _labels(change.old), _labels(change.new)
        for resource, followers in self._by_resource.items():
            cache = self._caches.get(resource)
            for follower in followers.by_namespace_labels():
                interest = follower.interest
                if interest.reaches(namespace, before) != interest.reaches(namespace, now) and _has_any(cache, namespace, interest):
                    yield follower.key


def _has_any(cache: ResourceCache | None, namespace: str, interest: Interest) -> bool:
    if cache is None:
        return False
    keys = cache.places.in_namespace(namespace, interest.labels)
    return any(interest.selects(name=key[1], labels=cache.objects[key].labels) for key in keys)


def _labels(record: Record | None) -> Labels:
    return record.labels if record is not None else _NO_LABELS
