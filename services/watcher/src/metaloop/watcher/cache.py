"""Indexer: the last seen bytes of every watched object, by key, by owner UID, and orphans."""

from collections.abc import Iterable, Iterator, Mapping

from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.selector import Selector
from metaloop.common.report import Write
from metaloop.watcher.core.adopters import Pair, equality_of
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.object_index import ObjectIndex
from metaloop.watcher.core.record import ObjectKey, Record, version_number

_NOTHING: Mapping[ObjectKey, None] = {}


class ResourceCache:
    """All objects of one resource, as its watch has told them so far."""

    def __init__(self, resource: ResourceInfo) -> None:
        self.resource = resource
        self.version = 0
        """How far the watch has come: every object is seen at least as it was then."""
        self.is_synced = False
        """Whether a whole list was seen."""
        self.objects: dict[ObjectKey, Record] = {}
        self._owned: dict[str, dict[ObjectKey, None]] = {}
        """Keys by the UID of their controller; never an empty dict."""
        self._orphans: dict[str, dict[ObjectKey, None]] = {}
        """Keys without a controller, by namespace; never an empty dict."""
        self._orphans_by_label: dict[Pair, dict[str, dict[ObjectKey, None]]] = {}
        """The same again by each of their labels, then by namespace; never an empty dict."""
        self._index: ObjectIndex | None = None
        """Built on first use: few resources are queried for related objects."""
        self._unlisted: set[ObjectKey] | None = None
        """While a list is under way: what we hold and it hasn't shown yet."""

    # -- what the watch tells --------------------------------------------------------------------------------------------------------

    def begin_list(self) -> None:
        """A list of everything begins; what it doesn't show is gone when it ends."""
        self._unlisted = set(self.objects)

    def put(self, record: Record) -> Change | None:
        """The object is like this now; the change, or None where that is no news."""
        old = self.objects.get(record.key)
        if self._unlisted is not None:
            self._unlisted.discard(record.key)
        else:
            self.version = max(self.version, record.resource_version)
        if old is not None and old.is_same_version_as(record):
            return None
        if old is not None:
            self._unlink(old)
        self.objects[record.key] = record
        self._link(record)
        return Change(self.resource, record.key, old, record)

    def remove(self, record: Record) -> Change | None:
        """The object is gone; its last state, if it was there. A record's version is that of its deletion."""
        self.version = max(self.version, record.resource_version)
        return self._drop(record.key)

    def end_list(self, version: str) -> list[Change]:
        """The list was whole, as of `version`; the deletions that it implies."""
        gone, self._unlisted = self._unlisted or set(), None
        self.is_synced = True
        self.version = version_number(version) or self.version  # a server that was restored from a backup is further back than it was
        return [change for key in gone if (change := self._drop(key)) is not None]

    def progress(self, version: str) -> None:
        """The watch has come as far as `version`, though perhaps no object changed."""
        self.version = max(self.version, version_number(version))

    # -- what is asked of it ---------------------------------------------------------------------------------------------------------

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

        A version that is no number can't be compared, and counts as seen. Of a write that may not have been executed, the object is all that there
        is to see.
        """
        record = self.objects.get((write.namespace, write.name))
        if write.is_deletion:
            return record is None or record.uid != write.uid or record.is_deleting
        if write.is_uncertain:
            return record is not None
        wanted = version_number(write.resource_version)
        return self.version >= wanted or (record is not None and record.resource_version >= wanted)

    # -- indexes ---------------------------------------------------------------------------------------------------------------------

    def _candidates(self, namespace: str, selector: Selector) -> Iterable[Mapping[ObjectKey, None]]:
        pair = equality_of(selector)
        spaces = self._orphans if pair is None else self._orphans_by_label.get(pair, {})
        return (spaces.get(namespace, _NOTHING),) if namespace else spaces.values()

    def _drop(self, key: ObjectKey) -> Change | None:
        old = self.objects.pop(key, None)
        if old is None:
            return None
        self._unlink(old)
        return Change(self.resource, key, old, None)

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
