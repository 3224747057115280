"""Who leads, by a Lease: what each of several watchers may conclude from what it saw of the one object they share.

- At most one leads at any time. A leader counts its right from when it *sent* its last renewal, and only for two thirds of the lease; others
  count from when they *saw* that renewal, and for the whole of it.
- No two clocks are compared: `now` is always this process's own, and one that goes on while the process or the machine sleeps.
- A leader that was asleep finds its right run out before it acts again, since it asks each time before it speaks.
"""

from dataclasses import dataclass

_OWN_SHARE = 2 / 3
"""How much of the lease its holder counts on; the rest lies between its end and anybody else's beginning."""
_TRIES_PER_LEASE = 7.5
_RELEASED_SECONDS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """The Lease as it was read. `resource_version` is empty where there is none yet."""

    holder: str = ""
    duration_seconds: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0
    resource_version: str = ""


class Election:
    """What one candidate knows."""

    def __init__(self, *, identity: str, lease_seconds: int) -> None:
        self.identity = identity
        self.lease_seconds = lease_seconds
        self.record = LeaseRecord()
        """The Lease as it was seen last."""
        self._seen_at = float("-inf")
        """When the record was seen to change last."""
        self._holds_until = float("-inf")

    @property
    def retry_seconds(self) -> float:
        """How often the holder renews; others look twice as often."""
        return self.lease_seconds / _TRIES_PER_LEASE

    def see(self, record: LeaseRecord, *, now: float) -> None:
        """The Lease is like this."""
        if record != self.record:
            self._seen_at = now
        self.record = record

    def may_take(self, now: float) -> bool:
        """Whether nobody has the Lease, as far as this candidate can tell."""
        holder = self.record.holder
        return not holder or holder == self.identity or now >= self._seen_at + self.record.duration_seconds

    def bid(self, *, at: str) -> LeaseRecord:
        """What to write to take or keep the Lease; `at` is the time by the wall's clock, for people to read."""
        is_ours = self.record.holder == self.identity
        return LeaseRecord(
            holder=self.identity,
            duration_seconds=self.lease_seconds,
            acquired=self.record.acquired if is_ours else at,
            renewed=at,
            transitions=self.record.transitions + (not is_ours and bool(self.record.resource_version)),
            resource_version=self.record.resource_version,
        )

    def won(self, record: LeaseRecord, *, sent: float, now: float) -> None:
        """The bid that was sent at `sent` was accepted as `record`."""
        self.see(record, now=now)
        self._holds_until = sent + self.lease_seconds * _OWN_SHARE

    def holds(self, now: float) -> bool:
        """Whether this candidate leads at this moment."""
        return now < self._holds_until

    def seconds_left(self, now: float) -> float:
        """For how long it still leads without another renewal."""
        return max(0.0, self._holds_until - now)

    def resign(self, *, at: str) -> LeaseRecord:
        """What to write to let others have the Lease at once; this candidate leads no more."""
        self._holds_until = float("-inf")
        return LeaseRecord(
            duration_seconds=_RELEASED_SECONDS,
            acquired=at,
            renewed=at,
            transitions=self.record.transitions,
            resource_version=self.record.resource_version,
        )
