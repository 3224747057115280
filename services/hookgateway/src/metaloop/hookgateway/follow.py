"""What one Secret or ConfigMap holds, now and after each change."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Final, TypeAlias

from metaloop.common.api.fields import objects_at
from metaloop.common.errors import Unavailable
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.stream import watch_event
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.unstructured import resource_version
from metaloop.hookgateway.core.connection import Kind, Referent
from metaloop.hookgateway.core.credentials import contents_of

SILENCE_SECONDS: Final = 90.0
"""The API server sends a bookmark each minute; a watch that is silent for longer is dead, whatever TCP believes."""

Contents: TypeAlias = dict[str, bytes] | None
"""What an object holds by key; None while it does not exist."""

Follow: TypeAlias = Callable[[Referent], AsyncGenerator[Contents, None]]
"""Yields what an object holds now, and again whenever that may have changed, until the watch ends. Raises MetaloopError."""

_RESOURCES: Final[dict[Kind, ResourceInfo]] = {
    "Secret": ResourceInfo(api_version="v1", resource="secrets", kind="Secret", namespaced=True),
    "ConfigMap": ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True),
}


def following(client: KubeClient) -> Follow:
    """Reads and watches objects one by one, each by its name: the permission that this takes can be given for these names alone."""

    async def follow(referent: Referent) -> AsyncGenerator[Contents, None]:
        info, by_name = _RESOURCES[referent.kind], {"fieldSelector": f"metadata.name={referent.name}"}
        page = await client.list_page(info, referent.namespace, by_name)
        found = objects_at(page, "items", "list")
        yield contents_of(found[0], kind=referent.kind) if found else None
        since = {"resourceVersion": resource_version(page), "allowWatchBookmarks": "true"}
        async with aclosing(_awake(client.watch_lines(info.collection_path(referent.namespace), by_name | since))) as lines:
            async for line in lines:
                event = watch_event(line)
                if event.type != "BOOKMARK":
                    yield None if event.type == "DELETED" else contents_of(event.object, kind=referent.kind)

    return follow


def without_cluster(problem: str) -> Follow:
    """Follows nothing, and says why: a gateway whose webhooks need no Secrets does without a cluster."""

    async def follow(_: Referent) -> AsyncGenerator[Contents, None]:
        raise Unavailable(f"the gateway has no cluster to read from: {problem}")
        yield None  # makes this a generator

    return follow


async def _awake(lines: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The lines, until they stop coming; raises Unavailable for a silence that is none of the API server's."""
    async with aclosing(lines):
        while True:
            try:
                line = await asyncio.wait_for(anext(lines), SILENCE_SECONDS)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise Unavailable(f"its watch was silent for {SILENCE_SECONDS:g} s") from error
            yield line
