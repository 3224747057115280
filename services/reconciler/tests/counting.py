"""An inventory that counts how often its items are looked at."""

from collections.abc import Iterator, ValuesView

from metaloop.reconciler.core.component.identity import ObjectKey
from metaloop.reconciler.core.component.inventory import Item


class CountingInventory(dict[ObjectKey, Item]):
    """Counts each item that an iteration over all of them yields."""

    looked_at = 0

    def values(self) -> ValuesView[Item]:  # type: ignore[override]
        """The items."""
        return _Counted(self)


class _Counted(ValuesView[Item]):
    def __init__(self, inventory: CountingInventory) -> None:
        super().__init__(inventory)
        self._inventory = inventory

    def __iter__(self) -> Iterator[Item]:
        for key in self._inventory:
            self._inventory.looked_at += 1
            yield self._inventory[key]
