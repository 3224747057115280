"""What watcher and workers say to one another beside jobs, observations and reports: values and wire forms, and their subjects.

metaloop.claim.<shard>           worker -> watcher, a request: may I have this key, and what does its world look like?
metaloop.related.<shard>         worker -> watcher, a request: subscribe this parent to these queries; which objects do they select?
metaloop.renew.<shard>           worker -> watcher, a request: I still hold these leases (and have so many free slots)
metaloop.outcome.<shard>         worker -> watcher: the report of a finished sync
metaloop.done.<shard>.<lease>    server -> watcher: the job of this lease is out of the stream
metaloop.held.<shard>            watcher -> all workers, when it starts: who holds what? Each answers with a `Renewal`
metaloop.resigned.<shard>        watcher -> those that stand by for it: the Lease of the shard is free
metaloop.tenure.<controller>     watcher -> watcher, a request: do you serve this controller, or finish what you began? Answered by nobody else
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote

from metaloop.common.job import ControllerId, JobKey, subject_token
from metaloop.common.json import dumps, loads
from metaloop.common.related_query import RelatedQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """A worker that took a job from the stream asks for its lease. `slots`: how many more jobs it could take now."""

    key: JobKey
    worker: str
    slots: int

    def to_bytes(self) -> bytes:
        """Its wire form, a JSON array."""
        return dumps([self.key.to_wire(), self.worker, self.slots])

    @classmethod
    def from_bytes(cls, wire: bytes) -> "ClaimRequest":
        """The request of a wire form."""
        key, worker, slots = loads(wire)
        return cls(key=JobKey.from_wire(key), worker=worker, slots=slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedRequest:
    """The holder of a lease subscribes its parent to exactly these queries, none included; `fingerprint` says what they were made from."""

    key: JobKey
    lease: str
    fingerprint: str
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """A worker's heartbeat: the leases that it holds in one shard, and how many more jobs it could take."""

    worker: str
    slots: int
    leases: Sequence[HeldLease]

    def to_bytes(self) -> bytes:
        """Its wire form, a JSON array."""
        return dumps([self.worker, self.slots, [[held.key.to_wire(), held.lease] for held in self.leases]])

    @classmethod
    def from_bytes(cls, wire: bytes) -> "Renewal":
        """The renewal of a wire form."""
        worker, slots, leases = loads(wire)
        return cls(worker=worker, slots=slots, leases=[HeldLease(JobKey.from_wire(key), lease) for key, lease in leases])


@lru_cache
def claim_subject(shard: str) -> str:
    """Where workers ask for leases."""
    return f"metaloop.claim.{subject_token(shard)}"


@lru_cache
def related_subject(shard: str) -> str:
    """Where workers subscribe their parents to related objects, and ask which objects those are."""
    return f"metaloop.related.{subject_token(shard)}"


@lru_cache
def renew_subject(shard: str) -> str:
    """Where workers renew leases."""
    return f"metaloop.renew.{subject_token(shard)}"


@lru_cache
def outcome_subject(shard: str) -> str:
    """Where workers report how a sync ended."""
    return f"metaloop.outcome.{subject_token(shard)}"


def done_subject(shard: str, lease: str) -> str:
    """Where the server's receipt for the job of `lease` goes; `*` as lease stands for all of them."""
    return f"{_done_prefix(shard)}{lease}"


@lru_cache
def _done_prefix(shard: str) -> str:
    return f"metaloop.done.{subject_token(shard)}."


def held_subject(shard: str) -> str:
    """Where a watcher that starts asks who holds what."""
    return f"metaloop.held.{subject_token(shard)}"


def resigned_subject(shard: str) -> str:
    """Where a leader that gave its Lease back tells those that stand by; they would find out by themselves, a moment later."""
    return f"metaloop.resigned.{subject_token(shard)}"


def tenure_subject(controller: ControllerId) -> str:
    """Where the watcher that serves a controller answers."""
    return f"metaloop.tenure.{subject_token(controller.kind)}.{subject_token(controller.name)}"


HELD_IN_ANY_SHARD = "metaloop.held.*"


def shard_of(subject: str) -> str:
    """The shard that a subject ends with."""
    return unquote(subject.rpartition(".")[2])
