"""The composition root: builds clients, cache and tasks, and ties their lifetimes together."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from metaloop.common.bus.connect import connected
from metaloop.common.bus.stream import JobStream, StreamSettings
from metaloop.common.errors import Unavailable
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.discovery import Discovery
from metaloop.common.kube.events import EventRecorder
from metaloop.common.report import Write
from metaloop.common.service import Service
from metaloop.watcher.claims import Claims
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.core.workqueue import Queue
from metaloop.watcher.dispatch import Dispatcher
from metaloop.watcher.route import Router
from metaloop.watcher.served import Served
from metaloop.watcher.settings import WatcherSettings
from metaloop.watcher.supervise import Supervisor
from metaloop.watcher.views import add_views, count_queue
from metaloop.watcher.watch import WatchSettings
from metaloop.watcher.watches import Watches
from metaloop.watcher.workqueue import WorkQueue


class Watcher:
    """The watcher's parts, wired: events flow from the watches through the supervisor and router into the queue, jobs from it to the bus."""

    def __init__(self, settings: WatcherSettings, kube: KubeClient, events: EventRecorder) -> None:
        self._settings = settings
        limits = Limits(lease_seconds=settings.ack_wait_seconds, gate_seconds=settings.read_your_writes_seconds)
        # An epoch that no earlier life of this watcher had.
        core = Queue(shard=self.shard, epoch=f"{time.time_ns():x}", seen=self._has_seen, limits=limits)
        self.queue = WorkQueue(core, clock=time.monotonic)
        self.watches = Watches(
            kube,
            settings=WatchSettings(inactivity_seconds=settings.watch_inactivity_seconds),
            on_change=self._take,
            on_news=self._ring,
        )
        self.router = Router(queue=self.queue, caches=self.watches.caches)
        self.served = Served(Discovery(kube), interval_seconds=settings.discovery_interval_seconds, on_change=self._take_served)
        self.supervisor = Supervisor(router=self.router, watches=self.watches, served=self.served, announcer=events, share=settings.share)
        self.claims = Claims(self.queue, observe=self.router.observe, lease_seconds=settings.ack_wait_seconds)

    @property
    def shard(self) -> str:
        """The shard as subjects name it."""
        return str(self._settings.share.shard.index)

    async def check_synced(self) -> None:
        """Return where every controller that can be served is. Raises Unavailable with what is still missing."""
        if problem := self.supervisor.problem():
            raise Unavailable(problem)

    def _take(self, change: Change) -> None:
        self.supervisor.take(change)
        self.queue.progress(change.resource.id, *change.key)

    def _take_served(self) -> None:
        self.supervisor.take_served()

    def _ring(self) -> None:
        self.supervisor.ring()

    def _has_seen(self, write: Write) -> bool:
        return self.router.has_seen(write)


def build(settings: WatcherSettings):  # noqa: ANN201 - what asynccontextmanager makes
    """What `run_service` builds the watcher from."""

    @asynccontextmanager
    async def opened(service: Service) -> AsyncIterator[None]:
        async with (
            KubeClient.connect(settings.kubeconfig) as kube,
            connected(settings.nats_url, name="metaloop-watcher") as bus,
            EventRecorder.running(kube) as events,
        ):
            watcher = Watcher(settings, kube, events)
            stream = JobStream(bus, StreamSettings(ack_wait_seconds=settings.ack_wait_seconds))
            dispatcher = Dispatcher(bus, stream, shard=watcher.shard, queue=watcher.queue, claims=watcher.claims)

            async def check_cluster() -> None:
                await kube.request("GET", "/version")

            service.probes.alive("nats", bus.check)
            service.probes.alive("kubernetes", check_cluster)
            service.probes.ready("nats", bus.check)
            service.probes.ready("controllers", watcher.check_synced)
            add_views(service.app, watcher.queue, watcher.router)
            count_queue(watcher.queue)
            service.run("supervise", watcher.supervisor.run)
            async with dispatcher.open():
                service.run("dispatch", dispatcher.run)
                yield

    return opened
