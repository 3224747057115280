"""What the queue knows of one key: its stage, why it must run, who holds it."""

from dataclasses import dataclass, replace
from enum import Enum, IntEnum

from metaloop.common.job import Job, JobKey
from metaloop.common.report import SyncReport
from metaloop.watcher.core.fair_queue import Flow, MarkClass
from metaloop.watcher.core.record import version_number
from metaloop.watcher.core.timers import Timer


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Why a key must run."""

    klass: MarkClass
    reason: str
    traceparent: str = ""
    versions: frozenset[int] = frozenset()
    """The resourceVersions that the parent came to, where its own changes are all that marked it; empty where there was anything else."""
    since: float = 0.0
    """When it was made."""

    def weighed(self, own: frozenset[int]) -> "Mark":
        """The mark, as an echo where it tells of nothing but our `own` writes to the parent."""
        is_echo = self.klass is MarkClass.CHANGED and self.versions and self.versions <= own
        return replace(self, klass=MarkClass.ECHO) if is_echo else self


def stronger(first: Mark | None, second: Mark) -> Mark:
    """One mark for both: the one of the higher class, and of two equals the first."""
    if first is None or second.klass < first.klass:
        return second
    if second.klass > first.klass or not first.versions:
        return first
    return replace(first, versions=first.versions | second.versions if second.versions else frozenset())


class Stage(Enum):
    """Where a key is."""

    IDLE = "idle"
    """Nobody marked it since its last sync."""
    WAITING = "waiting"
    """Marked, and in our order."""
    GATED = "gated"
    """Marked, but the cache hasn't seen yet what its last sync wrote."""
    QUEUED = "queued"
    """Offered to the stream, as far as we know in it, and not claimed."""
    LEASED = "leased"
    """Claimed by a worker; marked once more while it runs, it is dirty."""


class Offer(Enum):
    """What we know of a queued key's message."""

    SENT = "sent"
    """Nothing yet: the server hasn't answered."""
    STORED = "stored"
    """It is in the stream."""
    REFUSED = "refused"
    """The stream holds an older message of the key, maybe in the hands of a worker that we don't know of."""


class Purpose(IntEnum):
    """What a key's timers are for."""

    STAGE = 0
    """Something must have happened by then: an offer answered, a message claimed, a lease renewed, a receipt arrived."""
    GATE = 1
    """The cache had its time to see the writes."""
    RETRY = 2
    RESYNC_AFTER = 3
    RESYNC = 4


@dataclass(slots=True, eq=False, kw_only=True)
class Lease:
    """A worker's right to sync a key: while it lives, nobody else gets the key."""

    id: str
    worker: str
    expires: float
    serves: Mark
    """The mark that the sync answers; it comes back where the lease expires."""
    report: SyncReport | None = None
    has_receipt: bool = False
    """Whether the server told that the job is out of the stream. The sync is over when both are there."""
    is_dismissed: bool = False
    """Whether there was nothing to sync, so that no report will come."""

    @property
    def is_over(self) -> bool:
        """Whether the worker has told all that it will tell."""
        return self.has_receipt and (self.report is not None or self.is_dismissed)


class Entry:
    """One key. Compared by identity, since it is looked up far more often than made."""

    __slots__ = ("failures", "flow", "key", "lease", "mark", "offer", "own_versions", "refusals", "stage", "stage_timer", "timers")

    def __init__(self, key: JobKey, flow: Flow["Entry"]) -> None:
        self.key = key
        self.flow = flow
        self.stage = Stage.IDLE
        self.mark: Mark | None = None
        """Why it must run (again). None when idle; never None when waiting, gated or queued; when leased, it says whether the key is dirty."""
        self.offer: Offer | None = None
        """None unless queued."""
        self.refusals = 0
        """How often the stream refused the key since it was last claimed."""
        self.lease: Lease | None = None
        """None unless leased."""
        self.failures = 0
        """How many syncs failed since the last that didn't."""
        self.own_versions: frozenset[int] = frozenset()
        """What the parent came to by the writes of its last sync: its next events tell of these, and are only their echoes."""
        self.stage_timer = Timer(key, Purpose.STAGE)
        """Runs while the key is queued or leased, and no longer."""
        self.timers: dict[Purpose, Timer[JobKey]] = {}
        """The others, each made when it is first needed."""

    def job(self, shard: str) -> Job:
        """What is published for it."""
        reason, traceparent = (self.mark.reason, self.mark.traceparent) if self.mark else ("", "")
        return Job(key=self.key, shard=shard, reason=reason, traceparent=traceparent)

    def learn_writes(self, report: SyncReport | None) -> None:
        """Know the last sync's writes to the parent, and a mark that was only their echo."""
        writes = report.writes if report is not None else ()
        parent = (self.key.resource, self.key.namespace, self.key.name)
        own = [version_number(write.resource_version) for write in writes if (write.resource, write.namespace, write.name) == parent]
        self.own_versions = frozenset(own)
        if self.mark is not None:
            self.mark = self.mark.weighed(self.own_versions)

    def due(self, purpose: Purpose) -> float | None:
        """When its timer for `purpose` fires; None while there is none."""
        timer = self.timers.get(purpose)
        return timer.due if timer else None

    def stop(self, purpose: Purpose) -> None:
        """Have its timer for `purpose` not fire."""
        timer = self.timers.get(purpose)
        if timer:
            timer.due = None

    @property
    def is_blank(self) -> bool:
        """Whether nothing would be lost by forgetting it."""
        return self.stage is Stage.IDLE and not self.failures and all(timer.due is None for timer in self.timers.values())
