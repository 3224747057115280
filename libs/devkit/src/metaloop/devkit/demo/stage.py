"""What a scene has in hand: the world, whoever watches it, and a way to wait until something holds."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.kubelet import Kubelet
from metaloop.devkit.demo.sight import Objects, Sight, objects_of
from metaloop.devkit.demo.view import View
from metaloop.devkit.demo.world import World
from metaloop.devkit.errors import DevkitError
from metaloop.devkit.testbed.cluster import Cluster

S = TypeVar("S", bound=Sight)

# Kubernetes' garbage collector takes up to 40 s to notice a new kind; everything else takes seconds at most.
_PATIENCE_SECONDS = 90.0
_LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(Generic[S]):
    """One tale's world, and whoever watches it."""

    world: World
    view: View
    look: Callable[[World], Awaitable[S]]
    kubelet: Kubelet

    @property
    def cluster(self) -> Cluster:
        """The way into the cluster, as its user."""
        return self.world.cluster

    async def until(self, holds: Callable[[S], object]) -> S:
        """The first sight for which it holds; all sights on the way are shown."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            sight = await self.look(self.world)
            self.view.show(sight)
            if holds(sight):
                return sight
            if time.monotonic() > deadline:
                raise DevkitError(f"the cluster is still not as it should be after {_PATIENCE_SECONDS:g} s: {sight.counts}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def change(self, resource: ResourceInfo, name: str, change: JsonObject, *, namespace: str | None = None) -> None:
        """Somebody changes an object: in the tale's own namespace, unless told otherwise."""
        await self.cluster.patch(resource, self.world.namespace if namespace is None else namespace, name, change)

    async def delete(self, resource: ResourceInfo, name: str, *, namespace: str | None = None) -> None:
        """Somebody deletes an object."""
        await self.cluster.delete(resource, self.world.namespace if namespace is None else namespace, name)


Scene: TypeAlias = Callable[[Stage[S]], Awaitable[None]]
"""A part of a story: it ends when the cluster is as it should be, or the story has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tale(Generic[S]):
    """The story of an example."""

    about: str
    look: Callable[[World], Awaitable[S]]
    scenes: tuple[Scene[S], ...]


def seeing(*resources: ResourceInfo) -> Callable[[World], Awaitable[Objects]]:
    """A look at all objects of some kinds."""

    async def look(world: World) -> Objects:
        return await objects_of(world.cluster, resources)

    return look
