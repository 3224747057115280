"""The queue's time limits, its limit per controller, and its counters."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The time limits of the queue, in seconds, and how many jobs one controller may have in flight."""

    lease_seconds: float = 5.0
    """A lease that is not renewed for so long is over. Equals the stream's `ack_wait`, so its job comes back then."""
    gate_seconds: float = 2.0
    """The longest that a key waits for the cache to see its writes, if the cache hears of their resources."""
    silence_seconds: float = 30.0
    """The longest that it waits while nothing is heard of a resource that it wrote to."""
    answer_seconds: float = 1.0
    """After so long, an offer that the server did not answer is repeated."""
    claim_seconds: float = 5.0
    """After so long, a stored job that nobody claimed is offered again, in case the stream lost it."""
    refused_seconds: float = 0.5
    """After so long, a refused offer is repeated, then after twice as long each time, up to `claim_seconds`."""
    receipt_seconds: float = 1.0
    """How long a report waits for the receipt, and a receipt for the report."""
    worker_silence_seconds: float = 10.0
    """A worker that said nothing for so long has no free slots."""
    jobs_of_one_controller: int = 192
    """Per worker: fewer than it has slots, so that a hook which hangs leaves some to others."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """Counters of what happened so far, for metrics."""

    marks: int = 0
    offers: int = 0
    refusals: int = 0
    claims: int = 0
    busy: int = 0
    finished: int = 0
    leases_expired: int = 0
    leases_adopted: int = 0
    stale_messages: int = 0
    """Reports and receipts of leases that no longer exist."""
    receipts_missed: int = 0
    reports_missed: int = 0
    gates_closed: int = 0
    gates_timed_out: int = 0
