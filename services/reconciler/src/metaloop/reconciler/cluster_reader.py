"""Answers what a sync asks about the cluster: its kinds, live objects, and instances of types that others have made."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol, assert_never

from metaloop.common.errors import Refused
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import NotFound
from metaloop.common.machine import monotonic
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo, version_of
from metaloop.common.waiting import gathered
from metaloop.reconciler.core.component.cluster import Address, Cluster, KindName
from metaloop.reconciler.core.component.managed_types import ManagedType
from metaloop.reconciler.core.steps import ClusterStep, DescribeCluster, FindForeign, ReadObjects
from metaloop.reconciler.ports import Api

_FRESH_SECONDS: Final = 2.0
"""How long the answer of discovery counts for kinds that it did not have."""
_NAMED_AT_MOST: Final = 3


class KnownResources(Protocol):
    """The resources that the API server serves, as of the last refresh."""

    async def refresh(self) -> bool:
        """Ask the API server again. Returns whether anything changed. Raises what a request raises."""
        ...

    def resources(self) -> Mapping[ResourceId, ResourceInfo]:
        """All resources."""
        ...

    def by_kind(self, api_version: str, kind: str) -> ResourceInfo | None:
        """The resource whose objects have this kind."""
        ...


class ClusterReader:
    """Reads the cluster for all syncs. `width` is the number of concurrent reads for one of them."""

    def __init__(self, discovery: KnownResources, *, uid: str, width: int, clock: Callable[[], float] = monotonic) -> None:
        self._discovery = discovery
        self._uid = uid
        self._width = width
        self._clock = clock
        self._refreshed_at = float("-inf")
        self._refreshing = asyncio.Lock()

    async def answer(self, step: ClusterStep, *, api: Api) -> object:
        """The result of one step. Raises the errors that its class names."""
        match step:
            case DescribeCluster(kinds):
                return await self._described(kinds)
            case ReadObjects(addresses, user):
                return await self._read(addresses, on_behalf_of(user, api))
            case FindForeign(types, label, value, user):
                return await self._foreign(types, f"{label}!={value}", on_behalf_of(user, api))
            case _:
                assert_never(step)

    async def _described(self, kinds: frozenset[KindName]) -> Cluster:
        if any(self._discovery.by_kind(*kind) is None for kind in kinds):
            await self._refresh()
        found = {kind: info for kind in kinds if (info := self._discovery.by_kind(*kind)) is not None}
        return Cluster(uid=self._uid, resources=found)

    async def _refresh(self) -> None:
        async with self._refreshing:
            if self._clock() - self._refreshed_at >= _FRESH_SECONDS:
                await self._discovery.refresh()
                self._refreshed_at = self._clock()

    async def _read(self, addresses: Sequence[Address], api: Api) -> list[JsonObject | None]:
        permits = asyncio.Semaphore(self._width)

        async def read(address: Address) -> JsonObject | None:
            async with permits:
                return await _live(address, api)

        return await gathered([read(address) for address in addresses])

    async def _foreign(self, types: Sequence[ManagedType], labels: str, api: Api) -> list[str]:
        await self._refresh()
        found: list[str] = []
        for info in self._resources_of(types):
            found += await _first_of(info, labels, api)
            if len(found) >= _NAMED_AT_MOST:
                break
        return found[:_NAMED_AT_MOST]

    def _resources_of(self, types: Sequence[ManagedType]) -> Iterator[ResourceInfo]:
        """The resources of these types, each once, whichever versions are served."""
        seen: set[tuple[str, str]] = set()
        for info in self._discovery.resources().values():
            is_covered = any(each.covers(info.group, version_of(info.api_version), info.kind) for each in types)
            if is_covered and (info.group, info.resource) not in seen:
                seen.add((info.group, info.resource))
                yield info


def on_behalf_of(user: str, api: Api) -> Api:
    """The requests of a user; our own if none is given."""
    return api.acting_as(user) if user else api


async def _first_of(info: ResourceInfo, labels: str, api: Api) -> list[str]:
    """The names of the first objects that the selector matches; none if the resource can't be listed."""
    try:
        page = await api.list_page(info, params={"labelSelector": labels, "limit": str(_NAMED_AT_MOST)})
    except Refused as error:
        if error.status.code in {404, 405}:
            return []
        raise
    return [unstructured.describe({**each, "kind": info.kind}) for each in unstructured.child_objects(page, "items")]


async def _live(address: Address, api: Api) -> JsonObject | None:
    try:
        return await api.get(address.info, address.namespace, address.name)
    except NotFound:
        return None
