"""Creates and changes parents as fast as the API server takes them, and sees from a watch when all of them are right."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

import aiohttp

from bench.rig import NAMESPACE, PARENTS
from metaloop.common.json import JsonObject, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import Cluster
from metaloop.devkit.testbed.manifests import parent

CLIENTS = 48

_REFUSED_PAUSE_SECONDS: Final = 0.05


async def in_parallel(jobs: Iterable[Coroutine[None, None, object]], *, clients: int = CLIENTS) -> None:
    """Nothing, once all are done, no more than `clients` at a time."""
    waiting = iter(jobs)

    async def client() -> None:
        for job in waiting:
            await job

    async with asyncio.TaskGroup() as tasks:
        for _ in range(clients):
            tasks.create_task(client())


async def create_parents(cluster: Cluster, names: Iterable[str], *, children: int, text: str = "first") -> None:
    """The parents are there."""
    spec: JsonObject = {"children": children, "text": text}
    await in_parallel(cluster.create(PARENTS, parent(PARENTS, name, namespace=NAMESPACE, spec=spec), namespace=NAMESPACE) for name in names)


async def change_parents(cluster: Cluster, names: Iterable[str], *, text: str) -> None:
    """The parents have another text."""
    await in_parallel(cluster.patch(PARENTS, NAMESPACE, name, {"spec": {"text": text}}) for name in names)


async def delete_parents(cluster: Cluster, names: Iterable[str]) -> None:
    """The parents are asked to go."""
    await in_parallel(cluster.delete(PARENTS, NAMESPACE, name) for name in names)


class Follower:
    """Sees, from one watch, for how many objects something holds, or how many are gone; made by `following`."""

    def __init__(self, holds: Callable[[JsonObject], bool], *, of_the_gone: bool, version: str) -> None:
        """Nothing is seen yet; `version` is the resourceVersion to look on from."""
        self.version = version
        self._holds = holds
        self._of_the_gone = of_the_gone
        self._names: set[str] = set()
        self._wanted = 0
        self._reached = asyncio.Event()
        self._reached_at = 0.0

    def see(self, event: JsonObject) -> None:
        """Take one event in."""
        obj = unstructured.child_object(event, "object")
        name = unstructured.name(obj)
        if (event["type"] == "DELETED") is self._of_the_gone and self._holds(obj):
            self._names.add(name)
        else:
            self._names.discard(name)
        if len(self._names) >= self._wanted and not self._reached.is_set():
            self._reached_at = time.monotonic()
            self._reached.set()

    def forget(self) -> None:
        """As if nothing had been seen: for what is to hold from now on."""
        self._names.clear()

    async def reach(self, count: int, *, within_seconds: float = 180.0) -> float:
        """When it held for `count` objects, on the monotonic clock."""
        self._wanted = count
        if len(self._names) >= count:
            return time.monotonic()
        self._reached.clear()
        try:
            async with asyncio.timeout(within_seconds):
                await self._reached.wait()
        except TimeoutError:
            raise TimeoutError(f"{len(self._names)} of {count} after {within_seconds:g} s") from None
        return self._reached_at


@asynccontextmanager
async def following(
    cluster: Cluster, holds: Callable[[JsonObject], bool], *, resource: ResourceInfo = PARENTS, of_the_gone: bool = False
) -> AsyncIterator[Follower]:
    """A follower of the namespace's objects, or of those that go, from now on, for as long as the block lasts."""
    listed = loads(await cluster.request("GET", resource.collection_path(NAMESPACE), params={"limit": "1"}))
    follower = Follower(holds, of_the_gone=of_the_gone, version=unstructured.resource_version(listed))
    async with asyncio.TaskGroup() as tasks:  # a follower that fails ends the block: one that nobody misses would be waited for in vain
        task = tasks.create_task(_follow(cluster, resource, follower))
        yield follower
        task.cancel()


def is_settled(*, children: int, generation: int = 1) -> Callable[[JsonObject], bool]:
    """Whether a parent's status is of a generation (or a later one) and counts so many children."""

    def holds(obj: JsonObject) -> bool:
        status = unstructured.child_object(obj, "status")
        return unstructured.integer(status, "observedGeneration") >= generation and status.get("children") == children

    return holds


async def _follow(cluster: Cluster, resource: ResourceInfo, follower: Follower) -> None:
    # The API server ends watches of slow readers in a burst: resume where we were.
    while True:
        try:
            await _see_events(cluster, resource, follower)
        except aiohttp.ClientResponseError as refusal:
            if refusal.status != HTTPStatus.TOO_MANY_REQUESTS:
                raise
            await asyncio.sleep(_REFUSED_PAUSE_SECONDS)


async def _see_events(cluster: Cluster, resource: ResourceInfo, follower: Follower) -> None:
    async for event in cluster.watch(resource, NAMESPACE, resource_version=follower.version):
        follower.version = unstructured.resource_version(unstructured.child_object(event, "object")) or follower.version
        if event["type"] != "BOOKMARK":
            follower.see(event)
