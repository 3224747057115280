"""Watches single Secrets and ConfigMaps, each by its name."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, Protocol, TypeAlias

from metaloop.common.api.fields import objects_at
from metaloop.common.errors import Unavailable
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.stream import WatchEvent, watch_event
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.unstructured import resource_version
from metaloop.hookgateway.core.connection import Kind, ObjectRef
from metaloop.hookgateway.core.credentials import data_of

SILENCE_SECONDS: Final = 90.0
"""The API server sends a bookmark each minute. A watch that is silent for longer is dead, whatever TCP believes."""

ObjectData: TypeAlias = dict[str, bytes] | None
"""The content of an object by key; None while the object does not exist."""

_RESOURCES: Final[dict[Kind, ResourceInfo]] = {
    "Secret": ResourceInfo(api_version="v1", resource="secrets", kind="Secret", namespaced=True),
    "ConfigMap": ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True),
}


class ObjectWatcher(Protocol):
    """Where Secrets and ConfigMaps are read from."""

    def watch(self, ref: ObjectRef) -> AsyncGenerator[ObjectData, None]:
        """Yield what the object holds, now and whenever that may have changed, until the watch ends.

        Raises MetaloopError.
        """
        ...


class ClusterObjects:
    """The objects of a cluster.

    It needs the permission to list and watch them, which can be granted for single names.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def watch(self, ref: ObjectRef) -> AsyncGenerator[ObjectData, None]:
        """Yield what the object holds, now and after each change. Raises Unavailable if the watch goes silent."""
        info, by_name = _RESOURCES[ref.kind], {"fieldSelector": f"metadata.name={ref.name}"}
        page = await self._client.list_page(info, ref.namespace, by_name)
        found = objects_at(page, "items", "list")
        yield data_of(found[0], kind=ref.kind) if found else None
        since = {"resourceVersion": resource_version(page), "allowWatchBookmarks": "true"}
        stream = self._client.watch_lines(info.collection_path(ref.namespace), by_name | since)
        async with aclosing(_until_silent(stream)) as events:
            async for event in events:
                if event.type != "BOOKMARK":
                    yield None if event.type == "DELETED" else data_of(event.object, kind=ref.kind)


class NoCluster:
    """In place of a cluster where there is none: a gateway whose webhooks need no Secrets works without one."""

    def __init__(self, problem: str) -> None:
        self._problem = problem

    async def watch(self, ref: ObjectRef) -> AsyncGenerator[ObjectData, None]:
        """Raise Unavailable, which says why there is no cluster."""
        del ref  # none can be read
        raise Unavailable(f"the gateway has no cluster to read from: {self._problem}")
        yield None  # makes this a generator


async def _until_silent(stream: AsyncGenerator[list[bytes], None]) -> AsyncGenerator[WatchEvent, None]:
    """The events. Raises Unavailable if none comes for longer than an API server is ever silent."""
    async with aclosing(stream):
        while True:
            try:
                lines = await asyncio.wait_for(anext(stream), SILENCE_SECONDS)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise Unavailable(f"its watch was silent for {SILENCE_SECONDS:g} s") from error
            for line in lines:
                yield watch_event(line)
