"""The keys that may not go while a watch of what they would be shown catches up. They take no place in the window.

All keys of a controller and a parent resource are shown objects of the same watches, so they go on together.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId
from metaloop.watcher.core.entry import Entry, Stage

IsBehind: TypeAlias = Callable[[JobKey, float], bool]
"""Whether what a key would be shown at that time may be older than our own last writes."""
_Group: TypeAlias = tuple[ControllerId, ResourceId]

_CHECK_SECONDS = 0.1
"""How often the groups are checked."""


@dataclass(slots=True)
class ParkedEntries:
    """The parked entries, by what they wait for."""

    _is_behind: IsBehind
    _groups: dict[_Group, dict[Entry, None]] = field(default_factory=dict[_Group, dict[Entry, None]])
    """No group is empty."""
    _due: float = 0.0
    """When the groups are checked next, if there is any."""

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    def park_if_behind(self, entry: Entry, now: float) -> bool:
        """Keep `entry` until it may go; whether it may not go now."""
        if not self._is_behind(entry.key, now):
            return False
        if not self._groups:
            self._due = now + _CHECK_SECONDS
        entry.stage = Stage.PARKED
        self._groups.setdefault(_group(entry), {})[entry] = None
        return True

    def discard(self, entry: Entry) -> None:
        """Keep `entry` no longer, if it is kept."""
        group = self._groups.get(_group(entry), {})
        group.pop(entry, None)
        if not group:
            self._groups.pop(_group(entry), None)

    def pop_current(self, now: float) -> list[Entry]:
        """The entries that may go now, in the order in which they were parked; none before the next check is due."""
        if not self._groups or now < self._due:
            return []
        self._due = now + _CHECK_SECONDS
        current = [group for group, entries in self._groups.items() if not self._is_behind(next(iter(entries)).key, now)]
        return [entry for group in current for entry in self._groups.pop(group)]

    def next_due(self) -> float | None:
        """When to ask for current entries next; None where none is parked."""
        return self._due if self._groups else None


def _group(entry: Entry) -> _Group:
    return entry.key.controller, entry.key.resource
