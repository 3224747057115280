"""What watchers and workers say to one another beside jobs, observations and reports: values and their wire forms."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TypeAlias

from metaloop.common.job import WIRE_VERSION, JobKey, check_version
from metaloop.common.json import dumps, loads
from metaloop.common.related_query import RelatedQuery

_VERSION_OF_CLAIM = 4
"""Where the version stands in a claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """A worker that took a job from the stream asks for its lease."""

    key: JobKey
    worker: str
    free_slots: int
    """How many more jobs the worker could take now."""
    cluster: str = ""
    """The UID of the worker's cluster, which a link adds on the way; empty where it doesn't know that."""

    def to_bytes(self, *, cluster: str = "") -> bytes:
        """Its wire form, a JSON array, with the worker's cluster and the version. The version stays at its place."""
        return dumps([self.key.to_wire(), self.worker, self.free_slots, cluster, WIRE_VERSION])

    @classmethod
    def from_bytes(cls, wire: bytes) -> "ClaimRequest":
        """The request of a wire form. Raises UnknownVersion.

        Workers of older versions don't name their cluster.
        """
        parts = loads(wire)
        check_version(parts[_VERSION_OF_CLAIM] if len(parts) > _VERSION_OF_CLAIM else None)
        key, worker, free_slots, *cluster = parts
        return cls(key=JobKey.from_wire(key), worker=worker, free_slots=free_slots, cluster=cluster[0] if cluster else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedRequest:
    """The holder of a lease subscribes its parent to exactly these queries, none included."""

    key: JobKey
    lease: str
    fingerprint: str
    """What the queries were made from: the watcher returns it with each observation."""
    queries: Sequence[RelatedQuery]

    def to_bytes(self) -> bytes:
        """Its wire form, a JSON array."""
        return dumps([self.key.to_wire(), self.lease, self.fingerprint, [each.to_wire() for each in self.queries]])

    @classmethod
    def from_bytes(cls, wire: bytes) -> "RelatedRequest":
        """The request of a wire form."""
        key, lease, fingerprint, queries = loads(wire)
        return cls(key=JobKey.from_wire(key), lease=lease, fingerprint=fingerprint, queries=[*map(RelatedQuery.from_wire, queries)])


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease that a worker believes it holds."""

    key: JobKey
    lease: str
    seconds: float = 0.0
    """For how long each of its renewals holds, as it was granted; 0 where its holder does not say."""

    def to_wire(self) -> tuple[list[str], str, float]:
        """Its wire form, a JSON array."""
        return self.key.to_wire(), self.lease, self.seconds

    @classmethod
    def from_wire(cls, wire: tuple[list[str], str] | tuple[list[str], str, float]) -> "HeldLease":
        """The lease of a wire form. Older workers send no length."""
        return cls(JobKey.from_wire(wire[0]), wire[1], wire[2] if len(wire) > 2 else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """A worker's heartbeat: the leases that it holds in one shard."""

    worker: str
    free_slots: int
    """How many more jobs the worker could take now."""
    leases: Sequence[HeldLease]

    def to_bytes(self) -> bytes:
        """Its wire form, a JSON array."""
        return dumps([self.worker, self.free_slots, [held.to_wire() for held in self.leases]])

    @classmethod
    def from_bytes(cls, wire: bytes) -> "Renewal":
        """The renewal of a wire form."""
        worker, free_slots, leases = loads(wire)
        return cls(worker=worker, free_slots=free_slots, leases=[*map(HeldLease.from_wire, leases)])


Lost: TypeAlias = Sequence[str]
"""Leases that their holder must not act upon any more."""


class PresenceRank(IntEnum):
    """Which watcher of a shard gives way to which: the higher number to the lower one."""

    ELECTED = 0
    """It holds the shard's Lease."""
    SERVING = 1
    """It serves the shard without an election."""
    STARTING = 2
    """It is about to serve the shard without an election, if nobody else does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """What a watcher tells the other watchers of its shard of itself."""

    rank: PresenceRank
    watcher: str
    """Its identity: no two processes have the same."""

    def precedes(self, other: "Presence") -> bool:
        """Whether `other` gives way to it. Of two that serve without an election, exactly one does.

        The Lease decides between elected ones.
        """
        if self.rank is PresenceRank.ELECTED and other.rank is PresenceRank.ELECTED:
            return False
        return (self.rank, self.watcher) < (other.rank, other.watcher)

    def to_bytes(self) -> bytes:
        """Its wire form, a JSON array."""
        return dumps([self.rank, self.watcher])

    @classmethod
    def from_bytes(cls, wire: bytes) -> "Presence":
        """The presence of a wire form."""
        rank, watcher = loads(wire)
        return cls(rank=PresenceRank(rank), watcher=watcher)


class OfferOutcome(Enum):
    """What became of an offered job."""

    QUEUED = "queued"
    ALREADY_QUEUED = "already queued"
    """The stream still holds an earlier job of the key, waiting or in a worker's hands: this offer was refused."""
    UNKNOWN = "unknown"
    """The job may be queued or not: offer it again, since a second offer of a queued job is only refused."""
