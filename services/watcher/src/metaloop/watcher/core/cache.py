"""The cache of one watch: the last seen bytes of every object, by key, by owner UID, and orphans."""

from collections.abc import Iterable, Iterator, Mapping

from metaloop.common.objects.selector import Selector
from metaloop.common.report import Write
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.labels import LabelPair, equality_of
from metaloop.watcher.core.object_index import ObjectIndex
from metaloop.watcher.core.record import ObjectKey, Record, version_number
from metaloop.watcher.core.watch import Watch, WatchStatus

_NOTHING: Mapping[ObjectKey, None] = {}


class ResourceCache:
    """The objects within the scope of one watch, as far as it has come."""

    def __init__(self, watch: Watch, *, now: float) -> None:
        self.watch = watch
        self.status = WatchStatus(heard_at=now)
        self.version = 0
        """How far the watch has come: every object is at least as new as this."""
        self.is_synced = False
        """Whether a whole list was seen."""
        self.objects: dict[ObjectKey, Record] = {}
        self.bytes = 0
        """The length of all objects as JSON."""
        self._owned: dict[str, dict[ObjectKey, None]] = {}
        """Keys by the UID of their controller. No dict is empty."""
        self._orphans: dict[str, dict[ObjectKey, None]] = {}
        """Keys without a controller, by namespace. No dict is empty."""
        self._orphans_by_label: dict[LabelPair, dict[str, dict[ObjectKey, None]]] = {}
        """The same by each of their labels, then by namespace. No dict is empty."""
        self._index: ObjectIndex | None = None
        """Built on first use: few resources are queried for related objects."""
        self._unlisted: set[ObjectKey] | None = None
        """During a list: the keys that it has not shown yet."""

    # -- from the watch ------------------------------------------------------------------------------------------------

    def begin_list(self) -> None:
        """A list begins. What it does not show is gone when it ends."""
        self._unlisted = set(self.objects)

    def put(self, record: Record) -> Change | None:
        """Store an object; returns the change, or None where it is no news."""
        old = self.objects.get(record.key)
        if self._unlisted is not None:
            self._unlisted.discard(record.key)
        else:
            self.version = max(self.version, record.resource_version)
        if old is not None and old.is_same_version_as(record):
            return None
        if old is not None:
            self._unlink(old)
            self.bytes -= len(old.raw)
        self.objects[record.key] = record
        self.bytes += len(record.raw)
        self._link(record)
        return Change(self.watch, record.key, old, record)

    def remove(self, record: Record) -> Change | None:
        """Remove an object; returns the change, or None where it was not there.

        The record's version is that of the deletion.
        """
        self.version = max(self.version, record.resource_version)
        return self._drop(record.key)

    def end_list(self, version: str) -> list[Change]:
        """The list was complete, as of `version`; returns the deletions that it implies."""
        gone, self._unlisted = self._unlisted or set(), None
        self.is_synced = True
        self.version = version_number(version) or self.version  # after a restore from a backup, an earlier one
        return [change for key in gone if (change := self._drop(key)) is not None]

    def progress(self, version: str) -> None:
        """The watch has come as far as `version`, even if no object changed."""
        self.version = max(self.version, version_number(version))

    # -- queries -------------------------------------------------------------------------------------------------------

    def owned_by(self, uid: str) -> Iterator[Record]:
        """The objects whose controller has this UID."""
        return (self.objects[key] for key in self._owned.get(uid, _NOTHING))

    def orphans(self, namespace: str, selector: Selector) -> Iterator[Record]:
        """The objects without controller that `selector` matches, in `namespace` or, where that is empty, anywhere."""
        for keys in self._candidates(namespace, selector):
            for key in keys:
                record = self.objects[key]
                if selector.matches(record.labels):
                    yield record

    @property
    def index(self) -> ObjectIndex:
        """Its keys by name, namespace and label."""
        if self._index is None:
            self._index = ObjectIndex(self.objects.values())
        return self._index

    def has_seen(self, write: Write) -> bool:
        """Whether it is no older than a write.

        A version that is not a number cannot be compared and counts as seen. A write that may not have been executed
        counts as seen once the object exists.
        """
        record = self.objects.get((write.namespace, write.name))
        if write.is_deletion:
            return record is None or record.uid != write.uid or record.is_deleting
        if write.is_uncertain:
            return record is not None
        wanted = version_number(write.resource_version)
        return self.version >= wanted or (record is not None and record.resource_version >= wanted)

    # -- indexes -------------------------------------------------------------------------------------------------------

    def _candidates(self, namespace: str, selector: Selector) -> Iterable[Mapping[ObjectKey, None]]:
        pair = equality_of(selector)
        spaces = self._orphans if pair is None else self._orphans_by_label.get(pair, {})
        return (spaces.get(namespace, _NOTHING),) if namespace else spaces.values()

    def _drop(self, key: ObjectKey) -> Change | None:
        old = self.objects.pop(key, None)
        if old is None:
            return None
        self._unlink(old)
        self.bytes -= len(old.raw)
        return Change(self.watch, key, old, None)

    def _link(self, record: Record) -> None:
        if self._index is not None:
            self._index.add(record)
        if record.owner is not None:
            self._owned.setdefault(record.owner.uid, {})[record.key] = None
            return
        namespace = record.key[0]
        self._orphans.setdefault(namespace, {})[record.key] = None
        for pair in record.labels.items():
            self._orphans_by_label.setdefault(pair, {}).setdefault(namespace, {})[record.key] = None

    def _unlink(self, record: Record) -> None:
        if self._index is not None:
            self._index.remove(record)
        if record.owner is not None:
            _strike(self._owned, record.owner.uid, record.key)
            return
        namespace = record.key[0]
        _strike(self._orphans, namespace, record.key)
        for pair in record.labels.items():
            spaces = self._orphans_by_label[pair]
            _strike(spaces, namespace, record.key)
            if not spaces:
                del self._orphans_by_label[pair]


def _strike(index: dict[str, dict[ObjectKey, None]], under: str, key: ObjectKey) -> None:
    keys = index[under]
    del keys[key]
    if not keys:
        del index[under]
