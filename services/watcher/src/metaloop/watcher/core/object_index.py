"""An index of one resource's objects by name, namespace and label, for queries of related objects."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar

from metaloop.common.objects.selector import Selector
from metaloop.watcher.core.labels import LabelPair, equality_of
from metaloop.watcher.core.record import ObjectKey, Record

Keys: TypeAlias = Mapping[ObjectKey, None]
Under = TypeVar("Under", bound=Hashable)
_NOTHING: Keys = {}


class ObjectIndex:
    """The keys of a cache's objects. It must be told of every change to the cache."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._by_name: dict[str, dict[ObjectKey, None]] = {}
        self._by_namespace: dict[str, dict[ObjectKey, None]] = {}
        self._by_label: dict[tuple[str, LabelPair], dict[ObjectKey, None]] = {}
        """By namespace and pair."""
        self._by_label_anywhere: dict[LabelPair, dict[ObjectKey, None]] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Index an object."""
        namespace, name = key = record.key
        self._by_name.setdefault(name, {})[key] = None
        self._by_namespace.setdefault(namespace, {})[key] = None
        for pair in record.labels.items():
            self._by_label.setdefault((namespace, pair), {})[key] = None
            self._by_label_anywhere.setdefault(pair, {})[key] = None

    def remove(self, record: Record) -> None:
        """Remove an object, given as it was indexed."""
        namespace, name = key = record.key
        _strike(self._by_name, name, key)
        _strike(self._by_namespace, namespace, key)
        for pair in record.labels.items():
            _strike(self._by_label, (namespace, pair), key)
            _strike(self._by_label_anywhere, pair, key)

    def named(self, names: Iterable[str]) -> Iterator[ObjectKey]:
        """The keys with one of `names`, in any namespace."""
        for name in names:
            yield from self._by_name.get(name, _NOTHING)

    def in_namespace(self, namespace: str, selector: Selector) -> Keys:
        """The keys in a namespace that `selector` may match: few where it requires a label to have one value."""
        pair = equality_of(selector)
        return self._by_namespace.get(namespace, _NOTHING) if pair is None else self._by_label.get((namespace, pair), _NOTHING)

    def anywhere(self, selector: Selector) -> Iterator[ObjectKey]:
        """The keys that `selector` may match, in any namespace."""
        pair = equality_of(selector)
        if pair is not None:
            yield from self._by_label_anywhere.get(pair, _NOTHING)
            return
        for keys in self._by_namespace.values():
            yield from keys


def _strike(index: dict[Under, dict[ObjectKey, None]], under: Under, key: ObjectKey) -> None:
    keys = index[under]
    del keys[key]
    if not keys:
        del index[under]
