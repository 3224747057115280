"""What is watched: a resource within a scope. Also how a watch is doing."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.watcher.core.catch_up import CatchUp


class Scope(NamedTuple):
    """Which objects of a resource a watch covers: those that meet both conditions, as the API server selects them."""

    namespace: str = ""
    """Empty: all namespaces, and cluster-scoped objects."""
    labels: str = ""
    """A label selector in kubectl's text form; empty: any labels."""


ALL: Final = Scope()


class WatchId(NamedTuple):
    """What identifies a watch, and the cache behind it."""

    resource: ResourceId
    scope: Scope = ALL

    def __str__(self) -> str:
        within = [each for each in (self.scope.namespace and f"in {self.scope.namespace}", self.scope.labels) if each]
        return f"{self.resource} ({', '.join(within)})" if within else str(self.resource)


@dataclass(frozen=True, slots=True)
class Watch:
    """A resource, as the API server serves it, and the scope within which it is watched."""

    resource: ResourceInfo
    scope: Scope = ALL
    id: WatchId = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the id, which is looked up several times in each event and sync."""
        object.__setattr__(self, "id", WatchId(self.resource.id, self.scope))


@dataclass(slots=True, kw_only=True)
class WatchStatus:
    """How a watch is doing, as its reflector keeps it."""

    heard_at: float
    """When the API server last said anything, a bookmark at the least."""
    catch_up: CatchUp = field(default_factory=CatchUp)
    """Whether an event may have been missed."""
    problem: str = ""
    """What prevents it from watching now, for people; empty while all is well."""
    is_refused: bool = False
    """Whether `problem` is that the resource does not exist, or that it may not be watched."""
