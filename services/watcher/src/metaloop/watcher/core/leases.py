"""The leases of one leader term: granted in it, or adopted from an earlier one."""

from collections.abc import Iterator

from metaloop.common.bus.messages import HeldLease
from metaloop.common.job import JobKey
from metaloop.watcher.core.entry import Entry, Lease, Mark


class Leases:
    """The leased entries by their lease.

    Leases carry the `epoch` of their term, so that a message from an earlier term is not taken for one of this term.
    `seconds` is the length of those that are granted now.
    """

    def __init__(self, *, epoch: str, seconds: float) -> None:
        self._epoch = epoch
        self._seconds = seconds
        self._entries: dict[str, Entry] = {}
        self._granted = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def grant(self, key: JobKey) -> HeldLease:
        """The terms of a new lease."""
        self._granted += 1
        return HeldLease(key, f"{self._epoch}-{self._granted}", self._seconds)

    def is_of_this_term(self, lease_id: str) -> bool:
        """Whether a lease was granted in this term; it may be over."""
        return lease_id.startswith(f"{self._epoch}-")

    def begin(self, entry: Entry, held: HeldLease, *, worker: str, serves: Mark, now: float) -> Lease:
        """Have `worker` hold an entry. The lease keeps the length that was granted, whatever is granted now."""
        seconds = held.seconds or self._seconds
        lease = entry.lease = Lease(id=held.lease, worker=worker, seconds=seconds, expires=now + seconds, began=now, serves=serves)
        self._entries[lease.id] = entry
        entry.flow.numbers.waited.observe(now - serves.since)
        return lease

    def find(self, lease_id: str, key: JobKey | None = None) -> tuple[Entry, Lease] | None:
        """The entry that a lease holds, and the lease; None where it is over, or of another key."""
        entry = self._entries.get(lease_id)
        if entry is None or entry.lease is None or key not in {None, entry.key}:
            return None
        return entry, entry.lease

    def end(self, lease: Lease) -> None:
        """Have a lease hold its entry no longer."""
        self._entries.pop(lease.id).lease = None
