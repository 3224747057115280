"""The figures to hold, each beside its bound and what the original needs on this class of machine."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["holds", "misses", ""]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number; without a bound it is told for its own sake."""

    name: str
    value: float
    unit: str = ""
    bound: float | None = None
    """At most this much."""
    original: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether the bound holds."""
        if self.bound is None:
            return ""
        return "holds" if round(self.value, 3) <= self.bound else "misses"

    def to_json(self) -> dict[str, object]:
        """Its form in the recorded results."""
        return {
            "name": self.name,
            "value": round(self.value, 4),
            "unit": self.unit,
            "bound": self.bound,
            "original": self.original,
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A row of the table of figures to hold."""

    name: str
    unit: str
    limit: float
    original: str

    def measured(self, value: float) -> Figure:
        """The figure that a run gave for this row."""
        return Figure(name=self.name, value=value, unit=self.unit, bound=self.limit, original=self.original)


WRITES_PER_PARENT = Bound(name="API writes per new parent with 3 children", unit="", limit=5, original="5.8-6.3")
READS_PER_PARENT = Bound(name="API reads per new parent", unit="", limit=0, original="3.0")
CALLS_PER_PARENT = Bound(name="hook calls per new parent", unit="", limit=3, original="3.0-3.5")
CREATE = Bound(name="1,000 x 3 from nothing: all statuses right", unit="s", limit=7.3, original="7.3-8.8")
CREATE_WIDE = Bound(name="300 x 10 from nothing: all statuses right", unit="s", limit=4.5, original="4.5-5.1")
CHANGE = Bound(name="1,000 x 3 changed in place", unit="s", limit=8.5, original="9.0-10.0")
CPU_PER_PARENT = Bound(name="our CPU per new parent with 3 children", unit="ms", limit=6, original="3.3-3.8")
CPU_AT_REST = Bound(name="our CPU per sync at rest", unit="ms", limit=2, original="0.91 + 1.0 of the API server")
REQUESTS_AT_REST = Bound(name="API requests at rest, all resyncs together", unit="", limit=0, original="one GET a sync")
HOOK_P50 = Bound(name="idle: change acknowledged -> hook asked, p50", unit="ms", limit=3, original="0.5")
HOOK_P99 = Bound(name="idle: change acknowledged -> hook asked, p99", unit="ms", limit=8, original="1.8")
CHILDREN_P50 = Bound(name="idle: change acknowledged -> 3 children updated, p50", unit="ms", limit=8, original="7.9-9.1")
CHILDREN_P99 = Bound(name="idle: change acknowledged -> 3 children updated, p99", unit="ms", limit=14, original="13-28")
BACKLOG = Bound(name="backlog of 1,000 changed, hook 50 ms: a fresh parent's children", unit="s", limit=0.5, original="2.6")
SLOW_HOOK = Bound(name="hook 200 ms, 500 x 1: all statuses right", unit="s", limit=2.5, original="5.2, 50 in flight")
FINALIZE = Bound(name="500 parents with finalize hook deleted", unit="s", limit=4, original="4.1")
RESTART = Bound(name="killed and restarted with 1,000 x 3: all synced again", unit="s", limit=4, original="1.9")
RESTART_WRITES = Bound(name="killed and restarted with 1,000 x 3: writes", unit="", limit=0, original="0")
CROWD = Bound(name="300 x 3 beside 20,000 ownerless objects, times without", unit="x", limit=1.1, original="10")
MEMORY = Bound(name="resident memory per cached ConfigMap of 1 KB", unit="KB", limit=2.5, original="8.8-9.8 idle")
CLAIMABLE = Bound(name="idle: change seen -> job in a worker's hands, p50", unit="ms", limit=1, original="")
EVENT_CPU = Bound(name="CPU per child event", unit="ms", limit=0.15, original="")
EVENTS_SECONDS = Bound(name="5,000 child events through one watcher", unit="s", limit=1, original="")
RELATED_EVENT = Bound(name="CPU to route an event, 10,000 related, 1,000 followers by name", unit="ms", limit=0.2, original="")
ORDER = Bound(name="5,000 due for a resync, hook 50 ms: a fresh parent's children", unit="s", limit=1.5, original="")
IDLE_WATCHES = Bound(name="at rest with 100 watched resources, of one core", unit="%", limit=1, original="")
OWNED_CROWD = Bound(name="300 x 3 beside 20,000 owned objects, times without", unit="x", limit=1.1, original="")
