"""What installed controllers need: the instance that serves each, and the watches of all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from metaloop.common.api.controller import Controller
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.kinds.registry import WORLDS
from metaloop.watcher.core.kinds.world import ClusterScopedParent, ServedResources, Unservable, Worlds
from metaloop.watcher.core.watch import Watch, WatchId


@dataclass(frozen=True, slots=True)
class Waiting:
    """A controller cannot run yet: the API server does not serve what it names."""

    missing: tuple[ResourceId, ...]

    def __str__(self) -> str:
        return f"waiting for {', '.join(map(str, self.missing))}, which the API server does not serve (yet)"


def instance_of(
    controller: Controller, served: ServedResources, *, worlds: Worlds = WORLDS, namespaces: tuple[str, ...] = ()
) -> Instance | Waiting | Unservable:
    """The instance that would serve `controller`, or why there can be none now (specification §3.1, §3.2).

    `namespaces` are those that are watched; empty: all.
    """
    world = worlds[controller.kind]
    missing = tuple(resource for resource in dict.fromkeys(world.required(controller)) if resource not in served)
    if missing:
        return Waiting(missing)
    wide = next((rule.resource for rule in controller.parents if namespaces and not served[rule.resource].namespaced), None)
    return ClusterScopedParent(wide, namespaces) if wide else world.instance(controller, served)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Which watches to stop, and then which to start."""

    stop: tuple[WatchId, ...]
    start: tuple[Watch, ...]


def difference(needed: Iterable[Watch], running: Mapping[WatchId, Watch]) -> Difference:
    """What to stop and start so that exactly the `needed` watches run, each once and with its resource as it is now."""
    wanted = {watch.id: watch for watch in needed}
    stop = tuple(id_ for id_, watch in running.items() if id_ not in wanted or is_replaced(watch.resource, wanted[id_].resource))
    return Difference(stop=stop, start=tuple(watch for id_, watch in wanted.items() if id_ not in running or id_ in stop))


def is_replaced(before: ResourceInfo, after: ResourceInfo) -> bool:
    """Whether a resource was replaced by another one of the same name. Nothing that was cached of it is valid then."""
    return (before.kind, before.namespaced) != (after.kind, after.namespaced)
