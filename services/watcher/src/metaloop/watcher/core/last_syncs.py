"""How the last sync of each key ended, for those who ask why.

Bounded: the keys that were synced last are remembered.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from metaloop.common.job import JobKey
from metaloop.common.report import SyncReport
from metaloop.watcher.core.entry import Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSync:
    """A sync that is over."""

    served: Mark
    """Why it was queued, and when."""
    began: float
    """When it was claimed."""
    ended: float
    report: SyncReport | None
    """How it ended, as its worker says; None where the worker's word was lost."""


@dataclass(slots=True, kw_only=True)
class LastSyncs:
    """The last sync of each of so many keys; of none where `limit` is 0."""

    limit: int
    _by_key: OrderedDict[JobKey, LastSync] = field(default_factory=OrderedDict[JobKey, LastSync])

    def add(self, key: JobKey, sync: LastSync) -> None:
        """Remember the last sync of a key, in place of the one before."""
        self._by_key[key] = sync
        self._by_key.move_to_end(key)
        if len(self._by_key) > self.limit:
            self._by_key.popitem(last=False)

    def of(self, parent: JobKey) -> Iterator[tuple[JobKey, LastSync]]:
        """The last syncs of a parent and of its parts."""
        return ((key, sync) for key, sync in self._by_key.items() if key.parent == parent)
