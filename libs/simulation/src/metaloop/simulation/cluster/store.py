"""What an API server stores: objects with their versions, and the log of changes that watches read. It does no I/O."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import owner_references
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.simulation.cluster.objects import Refusal, Stamp, created, deletion_begun, updated

FIRST_VERSION: Final = 1000


class Key(NamedTuple):
    """An object of one resource; the namespace is empty for cluster-scoped ones."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Event:
    """A change of one object."""

    version: int
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    obj: JsonObject
    before: JsonObject | None

    @property
    def line(self) -> bytes:
        """The line of a watch."""
        return dumps({"type": self.type, "object": self.obj})


@dataclass(slots=True)
class Collection:
    """The objects of one resource, and what happened to them."""

    info: ResourceInfo
    objects: dict[Key, JsonObject] = field(default_factory=dict)
    log: list[Event] = field(default_factory=list)
    oldest: int = 0
    """Changes up to this version are forgotten: a watch can't resume from before."""

    def since(self, version: int) -> list[Event]:
        """The changes after a version. Raises Refusal (410) where they are forgotten."""
        if version < self.oldest:
            raise Refusal(410, "Expired", f"too old resource version: {version} ({self.oldest})")
        return self.log[bisect_right(self.log, version, key=lambda event: event.version) :]


class Store:
    """All objects. `on_change` is called after each change."""

    def __init__(self, *, clock: Callable[[], str], on_change: Callable[[ResourceInfo, Event], None]) -> None:
        self.version = FIRST_VERSION
        self.collections: dict[ResourceId, Collection] = {}
        self._clock = clock
        self._on_change = on_change
        self._uids = 0
        self.by_uid: dict[str, tuple[ResourceInfo, Key]] = {}
        """Where each object is that exists."""

    def serve(self, *infos: ResourceInfo) -> None:
        """Serve these resources from now on."""
        for info in infos:
            self.collections.setdefault(info.id, Collection(info))

    def compact(self) -> None:
        """Forget all changes up to now."""
        for collection in self.collections.values():
            collection.oldest = self.version
            collection.log.clear()

    def get(self, info: ResourceInfo, key: Key) -> JsonObject:
        """The object. Raises Refusal (404)."""
        found = self.collections[info.id].objects.get(key)
        if found is None:
            raise Refusal(404, "NotFound", f'{info.resource} "{key.name}" not found')
        return found

    def list(self, info: ResourceInfo, namespace: str = "") -> list[JsonObject]:
        """The objects of a resource by name, those of one namespace if it is given."""
        objects = self.collections[info.id].objects
        return [objects[key] for key in sorted(objects) if not namespace or key.namespace == namespace]

    def create(self, info: ResourceInfo, namespace: str, sent: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """The object that was created. Raises Refusal."""
        key = Key(namespace, unstructured.name(sent))
        if not key.name:
            raise Refusal(422, "Invalid", f"{info.kind} is invalid: metadata.name: Required value: name or generateName is required")
        if key in self.collections[info.id].objects:
            raise Refusal(409, "AlreadyExists", f'{info.resource} "{key.name}" already exists')
        self._uids += 1
        stamp = Stamp(uid=f"00000000-0000-4000-8000-{self._uids:012d}", at=self._clock())
        made = created(info, sent, namespace=namespace, stamp=stamp)
        return made if dry_run else self._commit(info, key, made, before=None)

    def update(self, info: ResourceInfo, key: Key, sent: JsonObject, *, subresource: str = "", dry_run: bool = False) -> JsonObject:
        """The object after an update. Raises Refusal."""
        before = self.get(info, key)
        changed = updated(info, before, sent, subresource=subresource)
        if changed == before or dry_run:
            return changed
        if unstructured.is_deleting(changed) and not unstructured.finalizers(changed):
            self._remove(info, key, changed)
            return changed
        return self._commit(info, key, changed, before=before)

    def delete(self, info: ResourceInfo, key: Key, *, uid: str = "", version: str = "", dry_run: bool = False) -> JsonObject:
        """The object that was deleted, or whose deletion has begun. Raises Refusal."""
        before = self.get(info, key)
        for what, given, found in (
            ("UID", uid, unstructured.uid(before)),
            ("ResourceVersion", version, unstructured.resource_version(before)),
        ):
            if given and given != found:
                message = f"Precondition failed: {what} in precondition: {given}, {what} in object meta: {found}"
                raise Refusal(409, "Conflict", message)
        if dry_run:
            return before
        if not unstructured.finalizers(before):
            return self._remove(info, key, before)
        changed = deletion_begun(info, before, at=self._clock())
        return before if changed == before else self._commit(info, key, changed, before=before)

    def dangling(self) -> Iterable[tuple[ResourceInfo, Key, JsonObject]]:
        """The objects with an owner that does not exist."""
        for collection in self.collections.values():
            for key, obj in collection.objects.items():
                if any(reference.get("uid") not in self.by_uid for reference in owner_references(obj)):
                    yield collection.info, key, obj

    def _commit(self, info: ResourceInfo, key: Key, obj: JsonObject, *, before: JsonObject | None) -> JsonObject:
        self.version += 1
        stored = loads(dumps({**obj, "metadata": {**unstructured.metadata(obj), "resourceVersion": str(self.version)}}))
        collection = self.collections[info.id]
        collection.objects[key] = stored
        self.by_uid[unstructured.uid(stored)] = (info, key)
        self._append(collection, Event(self.version, "MODIFIED" if before is not None else "ADDED", stored, before))
        return stored

    def _remove(self, info: ResourceInfo, key: Key, obj: JsonObject) -> JsonObject:
        self.version += 1
        collection = self.collections[info.id]
        before = collection.objects.pop(key)
        del self.by_uid[unstructured.uid(before)]
        last = {**obj, "metadata": {**unstructured.metadata(obj), "resourceVersion": str(self.version)}}
        self._append(collection, Event(self.version, "DELETED", last, before))
        return last

    def _append(self, collection: Collection, event: Event) -> None:
        collection.log.append(event)
        self._on_change(collection.info, event)
