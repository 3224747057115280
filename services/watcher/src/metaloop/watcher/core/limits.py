"""The queue's time limits, its limit per controller, and its counters."""

from dataclasses import dataclass, field


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
    remembered_syncs: int = 0
    """For so many keys, it is remembered how their last sync ended."""


def _counted(documentation: str) -> int:
    """The field of a count, whose documentation its metric has."""
    return field(default=0, metadata={"documentation": documentation})


@dataclass(slots=True, kw_only=True)
class Counts:
    """Counters of what happened so far, for metrics."""

    marks: int = _counted("Marks of keys, each by an event or a timer.")
    offers: int = _counted("Jobs that were offered to the stream.")
    refusals: int = _counted("Offers that the stream refused, since it holds an older job of the key.")
    claims: int = _counted("Claims that were granted.")
    busy: int = _counted("Claims that were refused, since another worker holds the key.")
    finished: int = _counted("Leases that ended with a report, a dismissal or a receipt.")
    leases_expired: int = _counted("Leases that were not renewed in time.")
    leases_adopted: int = _counted("Leases of an earlier term that were taken over.")
    stale_messages: int = _counted("Reports and receipts of leases that no longer exist.")
    receipts_missed: int = _counted("Leases that ended without the receipt of the stream.")
    reports_missed: int = _counted("Leases that ended without the report of the worker.")
    gates_closed: int = _counted("Keys that had to wait until the cache has seen the writes of their last sync.")
    gates_timed_out: int = _counted("Keys that waited in vain until the cache has seen their writes.")
