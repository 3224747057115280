"""Which parents an orphan may belong to: parents by what their selectors ask for.

A selector that asks for `app=web` is found under that pair, so that an orphan finds its few possible parents by its own labels, however many
parents there are. Selectors without any equality are few; those are tried one by one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from metaloop.common.objects.selector import Selector
from metaloop.watcher.core.record import ObjectKey

Pair: TypeAlias = tuple[str, str]
Bucket: TypeAlias = tuple[str, Pair | None]
"""A namespace (or empty: all of them), and the pair that selectors in this bucket ask for."""


def equality_of(selector: Selector) -> Pair | None:
    """A label and the one value that `selector` asks of it, None where it asks for none so plainly."""
    for requirement in selector.requirements:
        if requirement.operator == "In" and len(requirement.values) == 1:
            return requirement.key, requirement.values[0]
    return None


@dataclass(slots=True)
class Adopters:
    """The parents of one controller by their selectors."""

    _selectors: dict[ObjectKey, Selector] = field(default_factory=dict[ObjectKey, Selector])
    _buckets: dict[Bucket, set[ObjectKey]] = field(default_factory=dict[Bucket, set[ObjectKey]])
    """Each parent in exactly one; never an empty set."""

    def put(self, parent: ObjectKey, selector: Selector) -> None:
        """Have `parent` found by `selector` from now on."""
        if self._selectors.get(parent) == selector:
            return
        self.remove(parent)
        self._selectors[parent] = selector
        self._buckets.setdefault(_bucket(parent, selector), set()).add(parent)

    def remove(self, parent: ObjectKey) -> None:
        """Have `parent` found no more."""
        selector = self._selectors.pop(parent, None)
        if selector is None:
            return
        bucket = _bucket(parent, selector)
        self._buckets[bucket].discard(parent)
        if not self._buckets[bucket]:
            del self._buckets[bucket]

    def selector_of(self, parent: ObjectKey) -> Selector | None:
        """What `parent` is found by; None where it isn't, and so adopts nothing."""
        return self._selectors.get(parent)

    def matching(self, namespace: str, labels: Mapping[str, str]) -> Iterator[ObjectKey]:
        """The parents whose selectors match an orphan in `namespace` with these labels: its neighbours, and cluster-scoped ones."""
        for space in {namespace, ""}:
            for pair in (*labels.items(), None):
                for parent in self._buckets.get((space, pair), ()):
                    if self._selectors[parent].matches(labels):
                        yield parent


def _bucket(parent: ObjectKey, selector: Selector) -> Bucket:
    return parent[0], equality_of(selector)
