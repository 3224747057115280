"""Leader election by a Lease: what each candidate may conclude from what it saw of the one object that they share.

- At most one candidate leads at any time. A leader counts from when it *sent* its last renewal, and only for a part of
  the lease. Others count from when they *saw* that renewal, and for the whole lease.
- The difference outlasts a leader's last answers: nobody waits for one any more when another leader begins.
- No two clocks are compared. `now` is this process's own clock, one that goes on while the process or the machine
  sleeps.
- A leader that was asleep finds its lease expired before it acts again, since it asks each time before it does.
- A leader that does not reach its workers says so with each renewal. A candidate that reaches them asks for the Lease,
  and only then is it given back. If nobody reaches them, the leader stays.
"""

from dataclasses import dataclass, replace

_OWN_SHARE = 2 / 3
"""How much of the lease its holder counts on at most. The rest lies between its end and another's beginning."""
ANSWERS_LAST_SECONDS = 2
"""That rest is never shorter than a worker waits for an answer. A lease that the leader granted last, and that was long
on its way, must not reach a worker after the next leader has asked all workers which leases they hold."""
SHORTEST_SECONDS = ANSWERS_LAST_SECONDS + 1
"""The shortest lease: its holder needs a second in which to renew it. A Lease object counts whole seconds."""
_TRIES_IN_OWN_SHARE = 5
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
    is_cut_off: bool = False
    """Whether its holder has not reached its workers for longer than the lease."""
    wanted_by: str = ""
    """The candidate that reaches the workers and asked a holder that does not to resign; empty for none."""


class Election:
    """What one candidate knows."""

    def __init__(self, *, identity: str, lease_seconds: int) -> None:
        self.identity = identity
        self.lease_seconds = lease_seconds
        self.record = LeaseRecord()
        """The Lease as it was seen last."""
        self._seen_at = float("-inf")
        """When the record was last seen to change."""
        self._holds_until = float("-inf")

    @property
    def retry_seconds(self) -> float:
        """How often the holder renews. Other candidates look twice as often."""
        return self.own_seconds / _TRIES_IN_OWN_SHARE

    @property
    def own_seconds(self) -> float:
        """For how long the holder counts on a renewal."""
        return min(self.lease_seconds * _OWN_SHARE, self.lease_seconds - ANSWERS_LAST_SECONDS)

    def see(self, record: LeaseRecord, *, now: float) -> None:
        """Take note of the Lease as it is."""
        if record != self.record and not _only_asks(record, self.record):
            self._seen_at = now
        self.record = record

    def may_take(self, now: float) -> bool:
        """Whether nobody holds the Lease, as far as this candidate can tell."""
        holder = self.record.holder
        return not holder or holder == self.identity or now >= self._seen_at + self.record.duration_seconds

    def bid(self, *, at: str, is_cut_off: bool = False) -> LeaseRecord:
        """What to write to take or keep the Lease; `at` is the wall-clock time, for people to read."""
        is_ours = self.record.holder == self.identity
        return LeaseRecord(
            holder=self.identity,
            duration_seconds=self.lease_seconds,
            acquired=self.record.acquired if is_ours else at,
            renewed=at,
            transitions=self.record.transitions + (not is_ours and bool(self.record.resource_version)),
            resource_version=self.record.resource_version,
            is_cut_off=is_cut_off,
        )

    @property
    def may_ask(self) -> bool:
        """Whether the Lease is worth asking for: its holder is cut off, and nobody has asked yet."""
        return self.record.is_cut_off and not self.record.wanted_by and self.record.holder != self.identity

    def request(self) -> LeaseRecord:
        """What to write to ask for the Lease. That is no renewal."""
        return replace(self.record, wanted_by=self.identity)

    def won(self, record: LeaseRecord, *, sent: float, now: float) -> None:
        """The bid that was sent at `sent` was accepted as `record`."""
        self.see(record, now=now)
        self._holds_until = sent + self.own_seconds

    def holds(self, now: float) -> bool:
        """Whether this candidate leads at this moment."""
        return now < self._holds_until

    def seconds_left(self, now: float) -> float:
        """For how long it still leads without another renewal."""
        return max(0.0, self._holds_until - now)

    def resign(self, *, at: str) -> LeaseRecord:
        """What to write to give the Lease back. This candidate no longer leads."""
        self._holds_until = float("-inf")
        return LeaseRecord(
            duration_seconds=_RELEASED_SECONDS,
            acquired=at,
            renewed=at,
            transitions=self.record.transitions,
            resource_version=self.record.resource_version,
        )


def _only_asks(record: LeaseRecord, before: LeaseRecord) -> bool:
    return bool(record.wanted_by) and replace(record, resource_version=before.resource_version, wanted_by=before.wanted_by) == before
