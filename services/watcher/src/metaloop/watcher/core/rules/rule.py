"""What a routing rule is, and what it answers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.report import SyncReport
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.fair_queue import MarkClass
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.watch import Watch


class Touched(NamedTuple):
    """A unit of work that has to be looked at."""

    key: JobKey
    klass: MarkClass = MarkClass.CHANGED
    version: int = 0
    """The resourceVersion of what changed, where our own write of that is little or no news to the unit: of the parent
    itself, or of an output of a part. Else 0."""
    is_new_parent: bool = False
    """Whether there is one parent more than before."""


class Later(NamedTuple):
    """A unit of work that has to be looked at once nothing has touched it like this for a while."""

    key: JobKey
    quiet_seconds: float
    """How long nothing may touch it before."""
    within_seconds: float
    """How long it waits at most, from the first touch on."""


class PartsOf(NamedTuple):
    """Parts of a parent, too many for one turn of the event loop."""

    parent: JobKey
    parts: Sequence[str]

    def keys(self) -> Iterator[JobKey]:
        """The key of each part. They are made one by one: to make 20,000 at once would be a long pause, too."""
        controller, resource, namespace, name, _ = self.parent
        return (JobKey(controller, resource, namespace, name, part) for part in self.parts)


class Swept(NamedTuple):
    """Parts of a parent that have to be looked at."""

    parts: PartsOf


class EndedParts(NamedTuple):
    """Parts that a parent no longer has. Those that it has again when their turn comes go on."""

    parts: PartsOf


class Ended(NamedTuple):
    """A unit of work that is no more: its parent was deleted, or is not selected.

    A rule that divides the work of parents may also end a part: marks of parts whose parent is gone cost a job each.
    """

    key: JobKey
    was_parent: bool = False
    """Whether there is one parent fewer than before."""


Concern: TypeAlias = Touched | Later | Swept | Ended | EndedParts


class Unit(NamedTuple):
    """A unit of work, and its parent as it is cached."""

    key: JobKey
    resource: ResourceInfo
    """The parent's resource."""
    parent: Record


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The objects of one watch that a claim shows together. Compared by identity."""

    watch: Watch


class Shown(NamedTuple):
    """Objects of a group that a claim shows."""

    group: Group
    records: Sequence[Record]


class Rule(Protocol):
    """One way in which objects concern the units of work of a controller."""

    @property
    def watches(self) -> Sequence[Watch]:
        """What has to be watched for it. The events of these watches are routed to it."""
        ...

    def concerned(self, change: Change, caches: Caches) -> Iterable[Concern]:
        """The units of work that a change concerns. The caches hold the state after the change.

        The rule keeps its indexes up to date from the changes that it is asked about.
        """
        ...

    def shown(self, unit: Unit, caches: Caches) -> Iterable[Shown]:
        """What a claim shows of a unit of work because of this rule."""
        ...


class Tally(Protocol):
    """What is counted of the parts of parents, for the syncs of the parents themselves."""

    def total(self) -> int:
        """How many parts there are, of all parents together."""
        ...

    def has(self, key: JobKey) -> bool:
        """Whether anything is left of a part."""
        ...

    def summary(self, unit: Unit) -> JsonObject | None:
        """What a claim of a parent itself shows; None for a part, and for a parent whose parts are not counted."""
        ...

    def reported(self, report: SyncReport, *, is_failing: bool) -> Iterable[Concern]:
        """The units of work that the end of a sync concerns."""
        ...
