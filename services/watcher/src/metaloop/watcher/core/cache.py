"""The cache of one watch: the last seen bytes of every object, by key, by owner UID, and orphans."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from metaloop.common.objects.selector import Selector
from metaloop.common.report import Write
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.labels import LabelPair, equality_of
from metaloop.watcher.core.object_index import ObjectIndex
from metaloop.watcher.core.record import ObjectKey, Record, version_number
from metaloop.watcher.core.section import Section
from metaloop.watcher.core.watch import Scope, Watch, WatchStatus

_NOTHING: Mapping[ObjectKey, None] = {}


class ResourceCache:
    """The objects within the scope of one watch, as far as it has come."""

    def __init__(self, watch: Watch, *, now: float, namespaces: Sequence[str] = ()) -> None:
        self.watch = watch
        self.sections = {each.scope.namespace: Section(watch=each, status=WatchStatus(heard_at=now)) for each in _parts(watch, namespaces)}
        """By namespace; the only one of a cache that is not restricted has the namespace of its scope, or none."""
        self.whole = next(iter(self.sections.values())) if len(self.sections) == 1 else None
        """The section, where there is only one."""
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

    # -- from the watch ------------------------------------------------------------------------------------------------

    def begin_list(self, namespace: str = "") -> None:
        """A list of a section begins. What it does not show is gone when it ends."""
        section = self._section(namespace)
        section.unlisted = set(self.objects) if self.whole else {key for key in self.objects if key[0] == namespace}

    def put(self, record: Record) -> Change | None:
        """Store an object; returns the change, or None where it is no news."""
        old = self.objects.get(record.key)
        section = self.whole or self.sections[record.key[0]]
        if section.unlisted is not None:
            section.unlisted.discard(record.key)
        else:
            section.version = max(section.version, record.resource_version)
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
        section = self._section(record.key[0])
        section.version = max(section.version, record.resource_version)
        return self._drop(record.key)

    def end_list(self, version: str, namespace: str = "") -> list[Change]:
        """The list of a section was complete, as of `version`; returns the deletions that it implies."""
        section = self._section(namespace)
        gone, section.unlisted = section.unlisted or set(), None
        section.is_synced = True
        section.version = version_number(version) or section.version  # after a restore from a backup, an earlier one
        return [change for key in gone if (change := self._drop(key)) is not None]

    def progress(self, version: str, namespace: str = "") -> None:
        """The watch of a section has come as far as `version`, even if no object changed."""
        section = self._section(namespace)
        section.version = max(section.version, version_number(version))

    # -- how far it has come -------------------------------------------------------------------------------------------

    @property
    def is_synced(self) -> bool:
        """Whether a whole list of each section was seen."""
        return self.whole.is_synced if self.whole else all(section.is_synced for section in self.sections.values())

    @property
    def version(self) -> int:
        """The version as of which every section is known, at least."""
        return min(section.version for section in self.sections.values())

    @property
    def heard_at(self) -> float:
        """Since when some section has heard nothing of the API server."""
        return min(section.status.heard_at for section in self.sections.values())

    @property
    def problem(self) -> str:
        """What prevents a section from being watched now; empty while all is well."""
        if self.whole:
            return self.whole.status.problem
        problems = [(name, section.status.problem) for name, section in self.sections.items()]
        return "; ".join(f"in {name}: {problem}" for name, problem in problems if problem)

    @property
    def is_refused(self) -> bool:
        """Whether a section does not exist, or may not be watched."""
        return any(section.status.is_refused for section in self.sections.values())

    def is_behind(self, now: float) -> bool:
        """Whether events of a section may have been missed, since its watch broke a moment ago."""
        return any(section.status.catch_up.is_behind(now) for section in self.sections.values())

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
        section = self.whole or self.sections.get(write.namespace)
        return section is None or section.version >= wanted or (record is not None and record.resource_version >= wanted)

    # -- indexes -------------------------------------------------------------------------------------------------------

    def _section(self, namespace: str) -> Section:
        return self.whole or self.sections[namespace]

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


def _parts(watch: Watch, namespaces: Sequence[str]) -> Sequence[Watch]:
    """What is asked of the API server: a watch of the resource in each of some namespaces, or one of all of it."""
    if not namespaces or not watch.resource.namespaced or watch.scope.namespace:
        return (watch,)
    return [Watch(watch.resource, Scope(namespace, watch.scope.labels)) for namespace in namespaces]


def _strike(index: dict[str, dict[ObjectKey, None]], under: str, key: ObjectKey) -> None:
    keys = index[under]
    del keys[key]
    if not keys:
        del index[under]
