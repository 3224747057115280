"""What a sync did so far: true whatever stops it, and reported whatever stopped it."""

from collections import Counter
from dataclasses import dataclass, field

from metaloop.common.report import Write
from metaloop.reconciler.core.effects import Effects


@dataclass(slots=True, kw_only=True)
class Journal:
    """The writes of one sync, and what was asked for meanwhile."""

    writes: list[Write] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)
    resync_after_seconds: float | None = None
    unknown_keys: tuple[str, ...] = ()

    def resync_within(self, seconds: float) -> None:
        """The parent is to be synced again so soon, or sooner where that was wanted already."""
        wanted = self.resync_after_seconds
        self.resync_after_seconds = seconds if wanted is None else min(wanted, seconds)

    def note(self, effects: Effects) -> None:
        """Notes what was carried out."""
        self.writes += effects.writes
        self.actions.update(type(done.action).__name__ for done in effects.done)

    def note_write(self, name: str, write: Write) -> None:
        """Notes one write under the name of its action."""
        self.writes.append(write)
        self.actions[name] += 1
