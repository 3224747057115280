"""Removes the finalizer of a deleted controller from its parents: from each that lets it, whatever the others do."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from metaloop.common.errors import MetaloopError, Transient
from metaloop.common.json import JsonObject
from metaloop.common.kube import finalizers
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo

_CONCURRENT_RELEASES: Final = 8
"""From how many parents of a controller the finalizer is removed at once."""
_PASSES: Final = 4
"""How often the parents of a resource are listed in one try. A parent that changes at that moment takes a second pass;
one that somebody puts the finalizer back on would take passes without end."""


class FinalizerRestored(Transient):
    """A parent has the finalizer again, although it was removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFinalizer:
    """A parent that keeps the finalizer, and why."""

    parent: JsonObject
    """Its apiVersion, kind and metadata."""
    resource: ResourceInfo
    error: BaseException

    def __str__(self) -> str:
        name = "/".join(filter(None, (unstructured.namespace(self.parent), unstructured.name(self.parent))))
        return f"{self.resource.resource} {name}: {self.error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlisted:
    """A parent resource whose objects could not be listed, and why."""

    resource: ResourceInfo
    error: MetaloopError

    def __str__(self) -> str:
        return f"{self.resource.resource} cannot be listed: {self.error}"


@dataclass(slots=True, kw_only=True)
class ParentsRelease:
    """What one try to release all parents came to."""

    released: int = 0
    kept: list[KeptFinalizer] = field(default_factory=list[KeptFinalizer])
    unlisted: list[Unlisted] = field(default_factory=list[Unlisted])

    @property
    def problem(self) -> str:
        """What failed, in an order that does not depend on chance; empty if every parent is released."""
        failed = [*sorted(map(str, self.unlisted)), *sorted(map(str, self.kept))]
        more = f"; and {len(failed) - 1} more" if len(failed) > 1 else ""
        return f"{failed[0]}{more}" if failed else ""


class ParentsReleaser:
    """Removes a finalizer from all objects of some resources."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube

    async def release(self, resources: list[ResourceInfo], finalizer: str) -> ParentsRelease:
        """Remove `finalizer` from every object that has it, and tell from which it could not be removed."""
        result = ParentsRelease()
        for resource in resources:
            try:
                await self._release_resource(resource, finalizer, result)
            except MetaloopError as error:
                result.unlisted.append(Unlisted(resource=resource, error=error))
        return result

    async def _release_resource(self, resource: ResourceInfo, finalizer: str, result: ParentsRelease) -> None:
        for _ in range(_PASSES):
            found = await finalizers.holders(self._kube, resource, finalizer)
            outcomes = await self._release_objects(resource, found, finalizer)
            result.released += outcomes.count(True)
            refused = [(obj, error) for obj, error in zip(found, outcomes, strict=True) if isinstance(error, BaseException)]
            if not found or refused:
                result.kept += [_kept(resource, obj, error) for obj, error in refused]
                return
        restored = FinalizerRestored("the finalizer is put back, or the object changes all the time")
        result.kept += [_kept(resource, obj, restored) for obj in await finalizers.holders(self._kube, resource, finalizer)]

    async def _release_objects(self, resource: ResourceInfo, found: list[JsonObject], finalizer: str) -> list[bool | BaseException]:
        """For each object whether this removed its finalizer, or why it was refused."""
        limiter = asyncio.Semaphore(_CONCURRENT_RELEASES)

        async def release(obj: JsonObject) -> bool:
            async with limiter:
                return await finalizers.release(self._kube, resource, obj, finalizer)

        # Not a task group: that would cancel the others at the first refusal.
        return await asyncio.gather(*(release(obj) for obj in found), return_exceptions=True)


def _kept(resource: ResourceInfo, obj: JsonObject, error: BaseException) -> KeptFinalizer:
    # A list of metadata calls each item PartialObjectMetadata.
    parent: JsonObject = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": unstructured.metadata(obj)}
    return KeptFinalizer(parent=parent, resource=resource, error=error)
