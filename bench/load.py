"""The load: creates, changes and deletes parents as fast as the API server takes them, and watches the outcome."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final, TypeAlias

import aiohttp

from bench.system import NAMESPACE, PARENTS
from metaloop.common.json import JsonObject, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, Cluster
from metaloop.devkit.testbed.manifests import parent

CLIENTS = 48
"""How many requests the load has in flight."""

Predicate: TypeAlias = Callable[[JsonObject], bool]

_REFUSED_PAUSE_SECONDS: Final = 0.05


async def in_parallel(jobs: Iterable[Coroutine[None, None, object]], *, clients: int = CLIENTS) -> None:
    """Run all jobs, at most `clients` at a time."""
    waiting = iter(jobs)

    async def client() -> None:
        for job in waiting:
            await job

    async with asyncio.TaskGroup() as tasks:
        for _ in range(clients):
            tasks.create_task(client())


async def create_parents(cluster: Cluster, names: Iterable[str], *, children: int) -> None:
    """Create parents that want so many children with the text `first`."""
    spec: JsonObject = {"children": children, "text": "first"}
    await in_parallel(cluster.create(PARENTS, parent(PARENTS, name, namespace=NAMESPACE, spec=spec), namespace=NAMESPACE) for name in names)


async def change_parents(cluster: Cluster, names: Iterable[str], *, text: str) -> None:
    """Change the text that the parents want in their children."""
    await in_parallel(cluster.patch(PARENTS, NAMESPACE, name, {"spec": {"text": text}}) for name in names)


async def delete_parents(cluster: Cluster, names: Iterable[str]) -> None:
    """Ask for the deletion of the parents."""
    await in_parallel(cluster.delete(PARENTS, NAMESPACE, name) for name in names)


async def converge(cluster: Cluster, names: Sequence[str], *, children: int) -> float:
    """Create parents; the seconds from the first create until the status of the last of them is right."""
    wanted, settled = frozenset(names), is_settled(children=children)
    async with counting(cluster, lambda obj: unstructured.name(obj) in wanted and settled(obj)) as right:
        start = time.monotonic()
        await create_parents(cluster, names, children=children)
        return await right.reach(len(names)) - start


async def seconds_to_children(cluster: Cluster, name: str, create: Callable[[], Coroutine[None, None, object]]) -> float:
    """Create the parent `name` by `create`; the seconds from then until it has three children."""

    def is_its_child(obj: JsonObject) -> bool:
        return unstructured.labels(obj).get("parent") == name

    async with counting(cluster, is_its_child, resource=CONFIG_MAPS) as its_children:
        start = time.monotonic()
        await create()
        return await its_children.reach(3) - start


class ObjectCount:
    """Counts, from one watch, the objects that a predicate holds for, or those that are gone; made by `counting`."""

    def __init__(self, predicate: Predicate, *, deleted: bool, version: str) -> None:
        """Nothing is counted yet; `version` is the resourceVersion to watch from."""
        self.version = version
        self._predicate = predicate
        self._deleted = deleted
        self._names: set[str] = set()
        self._wanted = 0
        self._reached = asyncio.Event()
        self._reached_at = 0.0

    def add(self, event: JsonObject) -> None:
        """Take one watch event into account."""
        obj = unstructured.child_object(event, "object")
        name = unstructured.name(obj)
        if (event["type"] == "DELETED") is self._deleted and self._predicate(obj):
            self._names.add(name)
        else:
            self._names.discard(name)
        if len(self._names) >= self._wanted and not self._reached.is_set():
            self._reached_at = time.monotonic()
            self._reached.set()

    def reset(self) -> None:
        """Count from 0 again."""
        self._names.clear()

    async def reach(self, count: int, *, within_seconds: float = 180.0) -> float:
        """Wait for the count; the time on the monotonic clock at which it was reached. Raises TimeoutError."""
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
async def counting(
    cluster: Cluster, predicate: Predicate, *, resource: ResourceInfo = PARENTS, deleted: bool = False
) -> AsyncIterator[ObjectCount]:
    """Count the objects of the bench's namespace from now on, for as long as the block lasts."""
    listed = loads(await cluster.request("GET", resource.collection_path(NAMESPACE), params={"limit": "1"}))
    count = ObjectCount(predicate, deleted=deleted, version=unstructured.resource_version(listed))
    async with asyncio.TaskGroup() as tasks:  # a watch that fails ends the block: nobody would ever reach the count
        task = tasks.create_task(_watch(cluster, resource, count))
        yield count
        task.cancel()


def is_settled(*, children: int, generation: int = 1) -> Predicate:
    """Whether a parent's status is of this generation (or a later one) and counts so many children."""

    def holds(obj: JsonObject) -> bool:
        status = unstructured.child_object(obj, "status")
        return unstructured.integer(status, "observedGeneration") >= generation and status.get("children") == children

    return holds


async def _watch(cluster: Cluster, resource: ResourceInfo, count: ObjectCount) -> None:
    # The API server ends the watches of slow readers in a burst: resume from the last version.
    while True:
        try:
            await _watch_once(cluster, resource, count)
        except aiohttp.ClientResponseError as refusal:
            await _pause_after(refusal)


async def _pause_after(refusal: aiohttp.ClientResponseError) -> None:
    """Wait a moment if the API server has too many requests; any other refusal is raised."""
    if refusal.status != HTTPStatus.TOO_MANY_REQUESTS:
        raise refusal
    await asyncio.sleep(_REFUSED_PAUSE_SECONDS)


async def _watch_once(cluster: Cluster, resource: ResourceInfo, count: ObjectCount) -> None:
    async for event in cluster.watch(resource, NAMESPACE, resource_version=count.version):
        count.version = unstructured.resource_version(unstructured.child_object(event, "object")) or count.version
        if event["type"] != "BOOKMARK":
            count.add(event)
