"""A watcher without a bus before a real API server, and the hands of the cluster's users."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.testing.polling import eventually
from metaloop.devkit.testbed.cluster import COMPOSITES, Cluster
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import child_rule, composite, parent, parent_resource
from metaloop.watcher.app import Watcher
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.kinds.registry import WORLDS
from metaloop.watcher.core.kinds.world import Worlds
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.watch import WatchId
from metaloop.watcher.settings import WatcherSettings

SELDOM_SECONDS = 300.0
"""How often discovery is asked where nothing else happens: what comes sooner does not come of that."""


class Heard:
    """Remembers the Events that would be recorded, as `type reason about: message`."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def record(self, regarding: JsonObject, event_type: str, reason: str, message: str) -> None:
        self.events.append(f"{event_type} {reason} {unstructured.name(regarding)}: {message}")

    def of(self, name: str) -> list[str]:
        """The reasons of what was told of a controller, in order."""
        return [event.split()[1] for event in self.events if event.split()[2] == f"{name}:"]

    def warnings(self, name: str) -> list[str]:
        return [event for event in self.events if event.startswith("Warning") and event.split()[2] == f"{name}:"]


class Scene:
    """A watcher without a bus, and the hands of the cluster's users."""

    def __init__(self, watcher: Watcher, heard: Heard, cluster: Cluster, namespace: str) -> None:
        self.watcher = watcher
        self.heard = heard
        self.cluster = cluster
        self.namespace = namespace
        self.name = namespace
        """What the controller of this scene is called."""
        self.parents = parent_resource(f"{namespace.replace('-', '')}s")

    @property
    def id(self) -> ControllerId:
        return ControllerId("CompositeController", self.name)

    def key(self, name: str = "p") -> JobKey:
        return JobKey(self.id, self.parents.id, self.namespace, name)

    @property
    def running(self) -> Instance | None:
        return self.watcher.routing.running.get(self.id)

    def manifest(self, name: str = "", **spec: JsonValue) -> JsonObject:
        return composite(name or self.name, parent=self.parents, hook_url="http://127.0.0.1:1/", children=[child_rule()], **spec)

    async def install(self, name: str = "", **spec: JsonValue) -> None:
        await self.cluster.create(COMPOSITES, self.manifest(name, **spec))

    async def install_served(self) -> None:
        """Controller and parent kind are there, and it runs."""
        await self.serve_parents()
        await self.install()
        await self.runs()

    async def serve_parents(self, resource: ResourceInfo | None = None) -> None:
        """Install the CRD of the parents, or of another resource, and wait until the watcher knows that it is served.

        Discovery lags behind the CRD's Established condition: a controller that comes in between is told to wait.
        """
        parents = resource or self.parents
        await install_parent(self.cluster, parents)
        await eventually(lambda: parents.id in self.watcher.served.resources)

    async def edit(self, change: JsonObject) -> None:
        await self.cluster.patch(COMPOSITES, "", self.name, change)

    async def create_parent(self, name: str = "p", *, namespace: str | None = None) -> None:
        space = self.namespace if namespace is None else namespace
        await self.cluster.create(self.parents, parent(self.parents, name, namespace=space), namespace=space)

    async def runs(self) -> None:
        await eventually(lambda: self.running is not None)

    async def stops(self) -> None:
        await eventually(lambda: self.running is None)

    def is_watched(self, resource: ResourceInfo | None = None) -> bool:
        """Whether a resource, the parents' unless another is given, is watched."""
        return self.watcher.routing.caches.get(WatchId((resource or self.parents).id)) is not None

    def record(self, resource: ResourceInfo, namespace: str, name: str) -> Record | None:
        """An object as it is cached."""
        return self.watcher.routing.caches.lookup(WatchId(resource.id), (namespace, name))

    async def told(self, words: str) -> None:
        await eventually(lambda: any(words in event for event in self.heard.warnings(self.name)))

    async def hears(self, *words: str) -> None:
        """Return once one Event contains all of these words."""
        await eventually(lambda: any(all(word in event for word in words) for event in self.heard.events))

    def marks(self) -> dict[str, str]:
        """Why each parent of the controller waits, by name."""
        return {
            entry.key.name: entry.mark.reason
            for entry in self.watcher.routing.queue.entries()
            if entry.mark and entry.key.controller == self.id
        }

    def forget_marks(self) -> None:
        for entry in list(self.watcher.routing.queue.entries()):
            self.watcher.routing.queue.forget(entry.key)

    async def marked(self, name: str, reason: str) -> None:
        await eventually(lambda: self.marks().get(name) == reason)


@asynccontextmanager
async def watcher_of(kube: KubeClient, heard: Heard, *, worlds: Worlds = WORLDS, **settings: object) -> AsyncIterator[Watcher]:
    """A watcher that supervises, ready."""
    watcher = Watcher(WatcherSettings(discovery_interval_seconds=SELDOM_SECONDS, **settings), kube, heard, worlds=worlds)  # type: ignore[arg-type]
    async with asyncio.TaskGroup() as group:
        watcher.controllers.begin_term()
        task = group.create_task(watcher.supervisor.run())
        await eventually(lambda: watcher.supervisor.problem() == "")
        yield watcher
        task.cancel()
