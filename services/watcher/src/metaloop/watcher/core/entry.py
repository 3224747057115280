"""The state of one key in the queue: its stage, why it must run, who holds it."""

from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import Final

from metaloop.common.job import Job, JobKey
from metaloop.common.report import SyncReport
from metaloop.watcher.core.fair_queue import Flow, MarkClass
from metaloop.watcher.core.record import version_number
from metaloop.watcher.core.timers import Timer

NO_VERSIONS: Final = frozenset[int]()
"""No resourceVersions: the one empty set for all entries and marks, since each would have one of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Why a key must run."""

    klass: MarkClass
    reason: str
    traceparent: str = ""
    versions: frozenset[int] = NO_VERSIONS
    """The resourceVersions of the changes that marked it, if each was one of the parent itself, or of an output of the
    part; else empty."""
    since: float = 0.0
    """When it was made."""

    def weighed(self, own: frozenset[int]) -> "Mark":
        """The mark, as an echo if it stands for nothing but our `own` writes."""
        is_echo = self.klass is MarkClass.CHANGED and self.versions and self.versions <= own
        return replace(self, klass=MarkClass.ECHO) if is_echo else self


def stronger(first: Mark | None, second: Mark) -> Mark:
    """One mark for both: the one of the higher class; of two equals the first.

    It has versions only if both have, since what has none stands for more than our own writes. An echo hides nothing.
    """
    if first is None:
        return second
    winner, other = (second, first) if second.klass < first.klass else (first, second)
    if not winner.versions or (other.klass is MarkClass.ECHO and winner.klass is not MarkClass.ECHO):
        return winner
    return replace(winner, versions=winner.versions | other.versions if other.versions else NO_VERSIONS)


class Stage(Enum):
    """The stage of a key."""

    IDLE = "idle"
    """Not marked since its last sync."""
    WAITING = "waiting"
    """Marked, and in the fair queue."""
    GATED = "gated"
    """Marked, but the cache has not seen yet what its last sync wrote."""
    PARKED = "parked"
    """Marked, but a watch of what it would be shown catches up."""
    QUEUED = "queued"
    """Offered to the stream, as far as is known in it, and not claimed."""
    LEASED = "leased"
    """Claimed by a worker. Marked again meanwhile, it is dirty."""


class Offer(Enum):
    """What is known of a queued key's message."""

    SENT = "sent"
    """Nothing yet: the server has not answered."""
    STORED = "stored"
    """It is in the stream."""
    REFUSED = "refused"
    """The stream holds an older message of the key, perhaps delivered to an unknown worker."""


class Purpose(IntEnum):
    """The purposes of a key's timers."""

    STAGE = 0
    """Something must have happened: an offer answered, a message claimed, a lease renewed, a receipt received."""
    GATE = 1
    """The cache has had its time to see the writes."""
    RETRY = 2
    RESYNC_AFTER = 3
    RESYNC = 4
    LATER = 5
    """What touched the key could wait, and nothing more has come for a while."""
    AT_LATEST = 6
    """The same, and it has waited for long enough."""


PUT_OFF: Final = (Purpose.LATER, Purpose.AT_LATEST)
"""The timers of a key that could wait."""


@dataclass(slots=True, eq=False, kw_only=True)
class Lease:
    """A worker's right to sync a key. While it lives, nobody else gets the key."""

    id: str
    worker: str
    seconds: float
    """For how long each renewal holds, as its worker was granted."""
    expires: float
    began: float
    """When it was granted, or adopted."""
    serves: Mark
    """The mark that the sync answers. It comes back if the lease expires."""
    report: SyncReport | None = None
    has_receipt: bool = False
    """Whether the server confirmed that the job is out of the stream. The sync is over once both are there."""
    is_dismissed: bool = False
    """Whether there was nothing to sync, so that no report will come."""
    is_forgotten: bool = False
    """Whether its key was forgotten meanwhile, so that what the sync writes may no longer be desired."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more is expected of the worker."""
        return self.has_receipt and (self.report is not None or self.is_dismissed)


class Entry:
    """One key. Compared by identity, since entries are looked up far more often than made."""

    __slots__ = (
        "failures",
        "flow",
        "key",
        "lease",
        "mark",
        "offer",
        "own_versions",
        "refusals",
        "stage",
        "stage_timer",
        "timers",
    )

    def __init__(self, key: JobKey, flow: Flow["Entry"]) -> None:
        self.key = key
        self.flow = flow
        self.stage = Stage.IDLE
        self.mark: Mark | None = None
        """Why it must run (again). None when idle; when leased, set if it is dirty; never None otherwise."""
        self.offer: Offer | None = None
        """None unless queued."""
        self.refusals = 0
        """How often the stream refused the key since it was last claimed."""
        self.lease: Lease | None = None
        """None unless leased."""
        self.failures = 0
        """How many syncs have failed in a row."""
        self.own_versions = NO_VERSIONS
        """The versions that the last sync's writes made, of the parent or of a part's outputs. Events with these
        versions are echoes."""
        self.stage_timer = Timer(key, Purpose.STAGE)
        """Runs while the key is queued or leased."""
        self.timers: tuple[Timer[JobKey], ...] = ()
        """The other timers, each made when it is first needed. Most keys have none or one."""

    def job(self, shard: str) -> Job:
        """The job that is published for it."""
        reason, traceparent = (self.mark.reason, self.mark.traceparent) if self.mark else ("", "")
        return Job(key=self.key, shard=shard, reason=reason, traceparent=traceparent)

    def learn_writes(self, lease: Lease) -> None:
        """Learn the last sync's writes, and weigh a mark that may be only their echo."""
        report = lease.report
        writes = report.writes if report is not None and not lease.is_forgotten else ()
        parent = (self.key.resource, self.key.namespace, self.key.name)
        own = [write for write in writes if self.key.part or (write.resource, write.namespace, write.name) == parent]
        self.own_versions = frozenset([version_number(write.resource_version) for write in own]) if own else NO_VERSIONS
        if self.mark is not None:
            self.mark = self.news_in(self.mark)

    def news_in(self, mark: Mark) -> Mark | None:
        """What a mark is worth after the last sync's writes; None for a part that is marked by nothing but their echo.

        A parent is synced after its own echo: its hook may look at its status. The outputs of a part are as its hook
        desired them.
        """
        weighed = mark.weighed(self.own_versions)
        return None if self.key.part and weighed.klass is MarkClass.ECHO else weighed

    def due(self, purpose: Purpose) -> float | None:
        """When its timer for `purpose` fires; None while it is not set."""
        timer = self.timer_for(purpose)
        return timer.due if timer else None

    def stop(self, purpose: Purpose) -> None:
        """Stop its timer for `purpose`."""
        timer = self.timer_for(purpose)
        if timer:
            timer.due = None

    def timer_for(self, purpose: Purpose) -> Timer[JobKey] | None:
        """Its timer for `purpose`, whether it is set or not; None before it was first set."""
        for timer in self.timers:
            if timer.purpose == purpose:
                return timer
        return None

    @property
    def is_kept_back(self) -> bool:
        """Whether it could be offered, and is not yet: others go first, or what it would be shown is behind."""
        return self.stage is Stage.WAITING or self.stage is Stage.PARKED

    @property
    def is_blank(self) -> bool:
        """Whether nothing would be lost by forgetting it."""
        return self.stage is Stage.IDLE and not self.failures and all(timer.due is None for timer in self.timers)
