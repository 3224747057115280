"""A scenario is a list of steps.

Each changes something in the cluster, and waits until the cluster is as it should be.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.environment import Environment
from metaloop.devkit.demo.kubelet import Kubelet
from metaloop.devkit.demo.output import Output
from metaloop.devkit.demo.snapshot import Objects, Snapshot, objects_of
from metaloop.devkit.errors import DevkitError
from metaloop.devkit.stack import Stack
from metaloop.devkit.testbed.cluster import Cluster

S = TypeVar("S", bound=Snapshot)

# Kubernetes' garbage collector may need 40 s to notice a new kind; everything else takes seconds at most.
_TIMEOUT_SECONDS = 90.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioRun(Generic[S]):
    """A scenario that is being played: what its steps work with."""

    environment: Environment
    output: Output
    take_snapshot: Callable[[Environment], Awaitable[S]]
    kubelet: Kubelet

    @property
    def cluster(self) -> Cluster:
        """A client of the cluster, with the rights of its user."""
        return self.environment.cluster

    @property
    def namespace(self) -> str:
        """The namespace of the scenario's objects."""
        return self.environment.namespace

    @property
    def stack(self) -> Stack:
        """Metaloop's services."""
        return self.environment.stack

    async def snapshot(self) -> S:
        """What the cluster holds now."""
        return await self.take_snapshot(self.environment)

    async def until(self, holds: Callable[[S], object]) -> S:
        """The first snapshot for which the condition holds; shows all snapshots, and raises DevkitError after 90 s."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            snapshot = await self.snapshot()
            self.output.show(snapshot)
            if holds(snapshot):
                return snapshot
            if time.monotonic() > deadline:
                raise DevkitError(f"the cluster is not as it should be after {_TIMEOUT_SECONDS:g} s: {snapshot.counts}")
            await asyncio.sleep(_POLL_SECONDS)

    async def apply(self, file: str) -> None:
        """Create the objects of one of the example's files."""
        await self.environment.apply(file)

    async def change(self, resource: ResourceInfo, name: str, change: JsonObject, *, namespace: str | None = None) -> None:
        """Merge a change into an object, in the scenario's namespace by default."""
        await self.cluster.patch(resource, self.namespace if namespace is None else namespace, name, change)

    async def delete(self, resource: ResourceInfo, name: str, *, namespace: str | None = None) -> None:
        """Delete an object, in the scenario's namespace by default."""
        await self.cluster.delete(resource, self.namespace if namespace is None else namespace, name)


Step: TypeAlias = Callable[[ScenarioRun[S]], Awaitable[None]]
"""One step: returns when the cluster is as it should be, or raises DevkitError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario(Generic[S]):
    """The scenario of one example."""

    about: str
    take_snapshot: Callable[[Environment], Awaitable[S]]
    steps: tuple[Step[S], ...]


def snapshots_of(*resources: ResourceInfo) -> Callable[[Environment], Awaitable[Objects]]:
    """A function that takes snapshots of all objects of some kinds."""

    async def take_snapshot(environment: Environment) -> Objects:
        return await objects_of(environment.cluster, resources)

    return take_snapshot
