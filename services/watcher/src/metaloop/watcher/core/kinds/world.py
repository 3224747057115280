"""What the watcher has to know of a kind of controller: the world of its controllers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from metaloop.common.api.controller import Controller
from metaloop.common.api.kinds import ControllerKind
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.watcher.core.adopters import Adopters
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.rules.parents import Parents
from metaloop.watcher.core.watch import Watch

ServedResources: TypeAlias = Mapping[ResourceId, ResourceInfo]
"""What the API server serves."""


@dataclass(frozen=True, slots=True)
class NoStatus:
    """A controller cannot run as it is: its parents have no status to write."""

    parent: ResourceId
    reason: ClassVar[str] = "NoStatusSubresource"

    def __str__(self) -> str:
        return f"parent resource {self.parent} does not have subresource 'Status' enabled"


@dataclass(frozen=True, slots=True)
class ClusterScopedInput:
    """A controller cannot run as it is: its parents are in namespaces, and one of its inputs is in none."""

    input: ResourceId
    parent: ResourceId
    reason: ClassVar[str] = "ClusterScopedInput"

    def __str__(self) -> str:
        return f"input resource {self.input} is cluster-scoped: it can only be an input of a cluster-scoped parent, not of {self.parent}"


@dataclass(frozen=True, slots=True)
class ClusterScopedParent:
    """A controller cannot run here: its parents are in no namespace, and the watcher sees some namespaces only."""

    parent: ResourceId
    namespaces: tuple[str, ...]
    reason: ClassVar[str] = "ClusterScopedParent"

    def __str__(self) -> str:
        return (
            f"parent resource {self.parent} is cluster-scoped, and METALOOP_NAMESPACES restricts this watcher "
            f"to the namespaces {', '.join(self.namespaces)}"
        )


Unservable: TypeAlias = NoStatus | ClusterScopedInput | ClusterScopedParent
"""Why a controller cannot run, although everything that it names is served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How controllers of one kind are served."""

    kind: ControllerKind
    required: Callable[[Controller], tuple[ResourceId, ...]]
    """The resources that the API server must serve for a controller."""
    instance: Callable[[Controller, ServedResources], Instance | Unservable]
    """The instance that serves a controller, where everything required is served; or why there is none."""


Worlds: TypeAlias = Mapping[str, World]
"""The worlds of kinds, by the names of the kinds."""


def by_kind(*worlds: World) -> Worlds:
    """The worlds in their order."""
    return {world.kind.name: world for world in worlds}


def declared_resources(controller: Controller) -> tuple[ResourceId, ...]:
    """The resources of the parents and children that a spec declares, in its order."""
    return (*(rule.resource for rule in controller.parents), *(rule.resource for rule in controller.children))


def parents_in(controller: Controller, served: ServedResources, *, adopters: Adopters | None = None) -> tuple[Parents, ...]:
    """The parents that a spec selects, by their resources."""
    return tuple(
        Parents(
            controller=controller.id,
            watch=Watch(served[rule.resource]),
            selection=rule,
            finalizer=controller.finalizer,
            adopters=adopters,
        )
        for rule in controller.parents
    )
