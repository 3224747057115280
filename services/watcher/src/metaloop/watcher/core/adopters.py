"""Which parents may adopt an orphan: an index of parents by their selectors.

A parent whose selector requires `app=web` is filed under that pair, so an orphan finds its few candidates by its own
labels, however many parents there are. Selectors without any equality are rare; those are all evaluated.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from metaloop.common.objects.selector import Selector
from metaloop.watcher.core.labels import LabelPair, equality_of
from metaloop.watcher.core.record import ObjectKey, Record

Bucket: TypeAlias = tuple[str, LabelPair | None]
"""A namespace (empty for cluster-scoped parents), and the pair that the selectors in this bucket require."""


@dataclass(slots=True)
class Adopters:
    """The parents of one controller by their selectors."""

    select: Callable[[Record], Selector | None]
    """The selector of a parent; None for one that adopts nothing."""
    _selectors: dict[ObjectKey, Selector] = field(default_factory=dict[ObjectKey, Selector])
    _buckets: dict[Bucket, set[ObjectKey]] = field(default_factory=dict[Bucket, set[ObjectKey]])
    """Each parent in exactly one. No set is empty."""

    def learn(self, parent: ObjectKey, record: Record | None) -> None:
        """Index a parent as it is now; None for an object that is no parent, or no more."""
        selector = self.select(record) if record is not None else None
        if self._selectors.get(parent) == selector:
            return
        self._remove(parent)
        if selector is not None:
            self._selectors[parent] = selector
            self._buckets.setdefault(_bucket(parent, selector), set()).add(parent)

    def selector_of(self, parent: ObjectKey) -> Selector | None:
        """The selector of an indexed parent; None for one that adopts nothing."""
        return self._selectors.get(parent)

    def matching(self, namespace: str, labels: Mapping[str, str]) -> Iterator[ObjectKey]:
        """The parents in `namespace` and the cluster-scoped ones whose selectors match an orphan with `labels`."""
        for bucket in product({namespace, ""}, (*labels.items(), None)):
            for parent in self._buckets.get(bucket, ()):
                if self._selectors[parent].matches(labels):
                    yield parent

    def _remove(self, parent: ObjectKey) -> None:
        selector = self._selectors.pop(parent, None)
        if selector is None:
            return
        bucket = _bucket(parent, selector)
        self._buckets[bucket].discard(parent)
        if not self._buckets[bucket]:
            del self._buckets[bucket]


def _bucket(parent: ObjectKey, selector: Selector) -> Bucket:
    return parent[0], equality_of(selector)
