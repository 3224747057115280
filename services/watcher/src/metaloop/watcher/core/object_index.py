"""An index of one resource's objects by name, namespace and label, for queries of related objects and of inputs."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Generic, TypeAlias, TypeVar

from metaloop.common.objects.selector import Selector
from metaloop.watcher.core.labels import LabelPair, equality_of
from metaloop.watcher.core.record import ObjectKey, Record

Keys: TypeAlias = Mapping[ObjectKey, None]
Under = TypeVar("Under", bound=Hashable)
_NOTHING: Keys = {}


class ObjectIndex:
    """The keys of a cache's objects. It must be told of every change to the cache."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._by_name = KeyGroups[str]()
        self._by_namespace = KeyGroups[str]()
        self._by_label = KeyGroups[tuple[str, LabelPair]]()
        """By namespace and pair."""
        self._by_label_anywhere = KeyGroups[LabelPair]()
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Index an object."""
        namespace, name = key = record.key
        self._by_name.add(name, key)
        self._by_namespace.add(namespace, key)
        for pair in record.labels.items():
            self._by_label.add((namespace, pair), key)
            self._by_label_anywhere.add(pair, key)

    def remove(self, record: Record) -> None:
        """Remove an object, given as it was indexed."""
        namespace, name = key = record.key
        self._by_name.remove(name, key)
        self._by_namespace.remove(namespace, key)
        for pair in record.labels.items():
            self._by_label.remove((namespace, pair), key)
            self._by_label_anywhere.remove(pair, key)

    def named(self, names: Iterable[str]) -> Iterator[ObjectKey]:
        """The keys with one of `names`, in any namespace."""
        for name in names:
            yield from self._by_name.under(name)

    def in_namespace(self, namespace: str, selector: Selector) -> Keys:
        """The keys in a namespace that `selector` may match: few where it requires a label to have one value."""
        pair = equality_of(selector)
        return self._by_namespace.under(namespace) if pair is None else self._by_label.under((namespace, pair))

    def anywhere(self, selector: Selector) -> Iterator[ObjectKey]:
        """The keys that `selector` may match, in any namespace."""
        pair = equality_of(selector)
        if pair is not None:
            yield from self._by_label_anywhere.under(pair)
            return
        for keys in self._by_namespace.all():
            yield from keys


class KeyGroups(Generic[Under]):
    """Keys by what they are filed under.

    Most names, and many values of labels, are those of one object: a single key needs no dict of its own.
    """

    def __init__(self) -> None:
        self._filed: dict[Under, ObjectKey | dict[ObjectKey, None]] = {}
        """No dict is empty."""

    def add(self, under: Under, key: ObjectKey) -> None:
        """File a key, if it is not filed there already."""
        held = self._filed.setdefault(under, key)
        if isinstance(held, dict):
            held[key] = None
        elif held != key:
            self._filed[under] = {held: None, key: None}

    def remove(self, under: Under, key: ObjectKey) -> None:
        """Remove a key that is filed there."""
        held = self._filed[under]
        if isinstance(held, dict):
            del held[key]
        if not isinstance(held, dict) or not held:
            del self._filed[under]

    def under(self, under: Under) -> Keys:
        """The keys that are filed there, in the order in which they came."""
        return _keys(self._filed.get(under, _NOTHING))

    def all(self) -> Iterator[Keys]:
        """All keys, by what they are filed under."""
        return map(_keys, self._filed.values())


def _keys(held: ObjectKey | Keys) -> Keys:
    return {held: None} if isinstance(held, tuple) else held
