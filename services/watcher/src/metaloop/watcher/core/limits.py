"""How long the queue waits for what, how much one controller may take, and what is counted."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long the queue waits for what, in seconds, and how many jobs one controller may have on their way."""

    lease_seconds: float = 5.0
    """A lease that isn't renewed for so long is over; the same as the stream's `ack_wait`, so that its job comes back as it ends."""
    gate_seconds: float = 2.0
    """A key waits no longer than this for the cache to see its writes."""
    answer_seconds: float = 1.0
    """An offer that the server didn't answer is made again."""
    claim_seconds: float = 5.0
    """A stored job that nobody claimed is offered again, in case the stream lost it."""
    refused_seconds: float = 0.5
    """A refused offer is made again, and then after twice as long each time, up to `claim_seconds`."""
    receipt_seconds: float = 1.0
    """How long a report waits for the receipt, and a receipt for the report."""
    jobs_of_one_controller: int = 192
    """For each worker: fewer than it has places, so that a hook which hangs leaves some to others."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """What happened so far, for metrics."""

    marks: int = 0
    offers: int = 0
    refusals: int = 0
    claims: int = 0
    busy: int = 0
    finished: int = 0
    leases_expired: int = 0
    leases_adopted: int = 0
    stale_words: int = 0
    """Reports and receipts of leases that are no more."""
    receipts_missed: int = 0
    reports_missed: int = 0
    gates_closed: int = 0
    gates_timed_out: int = 0
