"""The queued keys towards the stream: how many jobs lie in it unclaimed, and which are to be offered once more."""

from dataclasses import dataclass, field

from metaloop.watcher.core.entry import Entry, Offer
from metaloop.watcher.core.window import Window

_IN_WINDOW = (Offer.SENT, Offer.STORED)


@dataclass(slots=True)
class Offers:
    """Offers of jobs to the stream."""

    window: Window = field(default_factory=Window)
    unclaimed: int = 0
    """How many entries are queued and not refused."""
    _repeats: dict[Entry, None] = field(default_factory=dict[Entry, None])
    """Queued entries whose job is to be offered once more, in order."""

    @property
    def has_room(self) -> bool:
        """Whether another job may be offered."""
        return self.unclaimed < self.window.size

    def set(self, entry: Entry, offer: Offer | None) -> None:
        """Record what is known of the job of `entry`; None once it is claimed."""
        self.unclaimed += (offer in _IN_WINDOW) - (entry.offer in _IN_WINDOW)
        entry.offer = offer

    def repeat(self, entry: Entry) -> None:
        """Have the job of a queued entry offered once more."""
        self._repeats[entry] = None

    def withdraw(self, entry: Entry) -> None:
        """Forget the offer of an entry that was claimed."""
        self.set(entry, None)
        self._repeats.pop(entry, None)

    def take_repeat(self) -> Entry | None:
        """The entry whose job is to be offered once more next; None where there is none."""
        if not self._repeats:
            return None
        entry = next(iter(self._repeats))
        del self._repeats[entry]
        return entry
