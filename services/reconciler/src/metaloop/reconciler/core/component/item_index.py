"""Which items of an inventory need which others: objects need their namespace, and instances need their type."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from metaloop.reconciler.core.component.inventory import Item
from metaloop.reconciler.core.component.managed_types import ANY, ManagedType
from metaloop.reconciler.core.component.order import NAMESPACE, GroupKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemIndex:
    """The items of an inventory by what they may need. To make it looks at each item once."""

    by_namespace: Mapping[str, list[Item]]
    by_kind: Mapping[tuple[str, str], list[Item]]
    """By group and kind."""
    by_version: Mapping[tuple[str, str], list[Item]]
    """By group and version."""

    def needing(self, holder: Item) -> list[Item]:
        """The items that need another one, without itself."""
        instances = [item for each in holder.managed_types for item in self._instances_of(each)]
        is_namespace = GroupKind(holder.key.group, holder.key.kind) == NAMESPACE
        inhabitants = self.by_namespace.get(holder.key.name, []) if is_namespace else []
        return [item for item in (*instances, *inhabitants) if item.key != holder.key]

    def _instances_of(self, of: ManagedType) -> list[Item]:
        """An object makes either one kind known, in all versions, or all kinds of one version."""
        return self.by_version.get((of.group, of.version), []) if of.kind == ANY else self.by_kind.get((of.group, of.kind), [])


def indexed(items: Iterable[Item]) -> ItemIndex:
    """The index of these items."""
    by_namespace: dict[str, list[Item]] = {}
    by_kind: dict[tuple[str, str], list[Item]] = {}
    by_version: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        by_namespace.setdefault(item.key.namespace, []).append(item)
        by_kind.setdefault((item.key.group, item.key.kind), []).append(item)
        by_version.setdefault((item.key.group, item.version), []).append(item)
    return ItemIndex(by_namespace=by_namespace, by_kind=by_kind, by_version=by_version)
