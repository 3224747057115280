"""Which resources the installed controllers want watched, and the start/stop difference; what a controller still waits for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from metaloop.common.api.composite import CompositeController
from metaloop.common.api.controller import Controller
from metaloop.common.api.revision import REVISIONS
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.watcher.core.instance import Instance, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Which watches to stop, and then which to start."""

    stop: tuple[ResourceId, ...]
    start: tuple[ResourceInfo, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """A controller that can't run yet: the API server doesn't serve what it names."""

    missing: tuple[ResourceId, ...]

    def __str__(self) -> str:
        return f"waiting for {', '.join(map(str, self.missing))}, which the API server does not serve (yet)"


@dataclass(frozen=True, slots=True)
class NoStatus:
    """A controller that can't run as it is: its parents have nowhere to put a status."""

    parent: ResourceId

    def __str__(self) -> str:
        return f"parent resource {self.parent} does not have subresource 'Status' enabled"


def instance_of(controller: Controller, served: Mapping[ResourceId, ResourceInfo]) -> Instance | Waiting | NoStatus:
    """The instance that would serve `controller`, or why there can't be one now (specification §3.1, §3.2)."""
    revisions = (REVISIONS.id,) if _is_rolling(controller) else ()
    wanted = dict.fromkeys((*parent_resources(controller), *(rule.resource for rule in controller.children), *revisions))
    missing = tuple(resource for resource in wanted if resource not in served)
    if missing:
        return Waiting(missing)
    targets = _targets(controller, served)
    if isinstance(controller, CompositeController):
        for target in targets:
            if not target.resource.has_status:
                return NoStatus(target.resource.id)
    return Instance(
        controller=controller,
        targets=targets,
        children=tuple(served[rule.resource] for rule in controller.children),
        revisions=served[REVISIONS.id] if revisions else None,
    )


def _is_rolling(controller: Controller) -> bool:
    return isinstance(controller, CompositeController) and controller.rolls


def parent_resources(controller: Controller) -> tuple[ResourceId, ...]:
    """The resources whose objects may be parents."""
    return tuple(rule.resource for rule in controller.parents)


def _targets(controller: Controller, served: Mapping[ResourceId, ResourceInfo]) -> tuple[Target, ...]:
    return tuple(
        Target(
            resource=served[rule.resource],
            finalizer=controller.finalizer,
            labels=rule.labels,
            annotations=rule.annotations,
            ignore_status_changes=rule.ignore_status_changes,
        )
        for rule in controller.parents
    )


def is_another_kind(one: ResourceInfo, other: ResourceInfo) -> bool:
    """Whether a resource was replaced by another of the same name: what was seen of the one says nothing of the other."""
    return (one.kind, one.namespaced) != (other.kind, other.namespaced)


def difference(needed: Iterable[ResourceInfo], watched: Mapping[ResourceId, ResourceInfo]) -> Difference:
    """What to stop and start so that exactly the `needed` resources are watched, each once and as they are now."""
    wanted = {info.id: info for info in needed}
    stop = tuple(id_ for id_, info in watched.items() if id_ not in wanted or is_another_kind(info, wanted[id_]))
    return Difference(stop=stop, start=tuple(info for id_, info in wanted.items() if id_ not in watched or id_ in stop))
