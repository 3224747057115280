"""Which resources the installed controllers want watched, and the start/stop difference; what a controller still waits for."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from metaloop.common.api.composite import CompositeController
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.watcher.core.instance import Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Which watches to start, and which to stop."""

    start: tuple[ResourceInfo, ...]
    stop: tuple[ResourceId, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A controller that can't run yet: the API server doesn't serve what it names."""

    missing: tuple[ResourceId, ...]

    def __str__(self) -> str:
        return f"waiting for {', '.join(map(str, self.missing))}, which the API server does not serve (yet)"


@dataclass(frozen=True, slots=True)
class Unservable:
    """A controller that can't run as it is; `reason` is an event's reason."""

    reason: str
    message: str


def instance_of(controller: CompositeController, served: Mapping[ResourceId, ResourceInfo]) -> Instance | Waiting | Unservable:
    """The instance that would serve `controller`, or why there can't be one now (specification §3.1)."""
    wanted = (controller.parent.resource, *(rule.resource for rule in controller.children))
    missing = tuple(resource for resource in wanted if resource not in served)
    if missing:
        return Waiting(missing)
    parent = served[controller.parent.resource]
    if not parent.has_status:
        return Unservable("SyncError", f"parent resource {parent.id} does not have subresource 'Status' enabled")
    return Instance(controller=controller, parent=parent, children=tuple(served[rule.resource] for rule in controller.children))


def difference(instances: Iterable[Instance], watched: Collection[ResourceId]) -> Difference:
    """What to start and stop so that exactly the resources of `instances` are watched, each once."""
    wanted = {info.id: info for instance in instances for info in instance.resources}
    return Difference(
        start=tuple(info for resource, info in wanted.items() if resource not in watched),
        stop=tuple(resource for resource in watched if resource not in wanted),
    )
