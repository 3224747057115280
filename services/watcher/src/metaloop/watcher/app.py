"""The composition root: builds clients, cache and tasks, and ties their lifetimes together."""

import asyncio
import os
import platform
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from metaloop.common.bus.links import Leads, WatcherLink
from metaloop.common.bus.nats.connection import connected
from metaloop.common.bus.nats.stream import StreamSettings
from metaloop.common.bus.nats.watcher import NatsWatcherLink
from metaloop.common.errors import Unavailable
from metaloop.common.job import JobKey
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.discovery import Discovery
from metaloop.common.kube.events import EventRecorder
from metaloop.common.report import Write
from metaloop.common.service import Service
from metaloop.watcher.claims import Claims
from metaloop.watcher.connectivity import BrokerConnectivity
from metaloop.watcher.core.election import Election
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.core.workqueue import Queue
from metaloop.watcher.dispatch import Dispatcher
from metaloop.watcher.finalizer_releaser import FinalizerReleaser, ReleaseIntervals
from metaloop.watcher.handover import OwnershipHandover
from metaloop.watcher.health_writer import HealthWriter
from metaloop.watcher.leader import Candidate, Leadership, SoleWatcher
from metaloop.watcher.memory import collect_now_and_then, spare_the_cache
from metaloop.watcher.route import Router
from metaloop.watcher.served import Served
from metaloop.watcher.settings import WatcherSettings
from metaloop.watcher.stall_detector import StallDetector
from metaloop.watcher.subscriptions import RelatedSubscriptions
from metaloop.watcher.supervise import Announcer, Supervisor
from metaloop.watcher.views import Views, count_cache, count_queue
from metaloop.watcher.watch import WatchSettings
from metaloop.watcher.watches import Watches
from metaloop.watcher.workqueue import WorkQueue

Item = TypeVar("Item")


class Watcher:
    """The watcher's parts, wired: events flow from the watches through the supervisor and router into the queue."""

    def __init__(self, settings: WatcherSettings, kube: KubeClient, announcer: Announcer) -> None:
        self._settings = settings
        self.queue = WorkQueue(self._new_queue(), clock=time.monotonic)
        self.watches = Watches(
            kube,
            settings=WatchSettings(inactivity_seconds=settings.watch_inactivity_seconds, field_manager=settings.field_manager),
            on_change=self._take,
            on_news=self._ring,
        )
        self.served = Served(Discovery(kube), interval_seconds=settings.discovery_interval_seconds, on_change=self._take_served)
        subscriptions = RelatedSubscriptions(self.watches.caches, served=lambda: self.served.resources)
        self.router = Router(queue=self.queue, caches=self.watches.caches, subscriptions=subscriptions)
        self.supervisor = Supervisor(router=self.router, watches=self.watches, served=self.served, announcer=announcer, settings=settings)
        subscriptions.on_change = self._ring
        self.claims = Claims(self.queue, observe=self.router.observe, is_behind=self._is_behind, lease_seconds=settings.ack_wait_seconds)
        self.stalls = StallDetector(self.queue.clock)

    def begin_term(self) -> None:
        """Forget who held what: as a leader, we begin from what the workers tell."""
        self.queue.core = self._new_queue()

    async def check_synced(self) -> None:
        """Return where every controller that can be served is. Raises Unavailable with what is still missing."""
        if problem := self.supervisor.problem():
            raise Unavailable(problem)

    def _new_queue(self) -> Queue:
        settings = self._settings
        limits = Limits(
            lease_seconds=settings.ack_wait_seconds,
            gate_seconds=settings.read_your_writes_seconds,
            jobs_of_one_controller=settings.controller_jobs,
        )
        # An epoch that no earlier term, of whomever, had.
        queue = Queue(shard=settings.share.name, epoch=f"{time.time_ns():x}", seen=self._has_seen, limits=limits)
        queue.is_silent = self._is_silent
        return queue

    def _is_behind(self, key: JobKey) -> bool:
        return self.stalls.is_behind() or any(self.watches.is_behind(resource) for resource in self.router.resources_of(key))

    def _is_silent(self, write: Write) -> bool:
        return not self.watches.has_spoken(write.resource, within_seconds=self._settings.read_your_writes_seconds)

    def _take(self, change: Change) -> None:
        self.supervisor.take(change)
        self.queue.progress(change.resource.id, *change.key)

    def _take_served(self) -> None:
        self.supervisor.take_served()

    def _ring(self) -> None:
        self.supervisor.ring()

    def _has_seen(self, write: Write) -> bool:
        return self.router.has_seen(write)


class LeaderTerm:
    """What a watcher does while it leads its shard: it grants leases, publishes jobs, and reports the health of controllers."""

    def __init__(self, watcher: Watcher, kube: KubeClient, link: WatcherLink, *, settings: WatcherSettings, leads: Leads) -> None:
        self._watcher = watcher
        self._kube = kube
        self._link = link
        self._settings = settings
        self._leads = leads
        self._handover = OwnershipHandover(link, watcher.queue, patience_seconds=settings.ack_wait_seconds)
        watcher.router.on_start, watcher.router.on_stop = self._handover.started, self._handover.stopped
        self._is_open = False

    async def run(self) -> None:
        """Lead until cancelled."""
        watcher = self._watcher
        watcher.begin_term()
        dispatcher = self._dispatcher()
        health = HealthWriter(self._kube, source=watcher.supervisor.health, clock=watcher.queue.clock, leads=self._leads)
        try:
            async with dispatcher.open() as heard_since, asyncio.TaskGroup() as tasks:
                if self._settings.leader_election and watcher.queue.core.window.workers:
                    watcher.stalls.assume_stalled(until=heard_since)  # nobody heard what workers wrote while nobody led
                watcher.supervisor.begin_term(leads=self._leads)
                self._is_open = True
                tasks.create_task(dispatcher.run(), name="dispatch")
                tasks.create_task(self._handover.run(leads=self._leads), name="handover")
                tasks.create_task(health.run(), name="health")
                tasks.create_task(self._releaser().run(), name="release")
        finally:
            self._is_open = False
            watcher.supervisor.end_term()

    async def check_open(self) -> None:
        """Return unless we lead and don't hear the workers yet; a standby is as ready as can be."""
        if self._leads() and not self._is_open:
            raise Unavailable("not open for workers yet")

    def _while_leading(self, listed: Callable[[], Iterable[Item]]) -> Callable[[], Iterable[Item]]:
        """What is `listed`, and nothing once another watcher may lead: a process that was asleep learns of that before its term is cancelled."""
        return lambda: listed() if self._leads() else ()

    def _releaser(self) -> FinalizerReleaser:
        watcher = self._watcher
        return FinalizerReleaser(
            self._kube,
            controllers=self._while_leading(watcher.supervisor.installed),
            served=lambda: watcher.served.resources,
            record_event=watcher.supervisor.record_event,
            intervals=ReleaseIntervals(lease_seconds=self._settings.ack_wait_seconds),
        )

    def _dispatcher(self) -> Dispatcher:
        watcher = self._watcher
        return Dispatcher(self._link, queue=watcher.queue, claims=watcher.claims, routing=watcher.router, leads=self._leads)


@asynccontextmanager
async def build(service: Service, settings: WatcherSettings) -> AsyncIterator[None]:
    """The watcher, part of the service for as long as the block lasts."""
    service.probes.alive("nats", _check_connected)  # until the first connection is made, which may take any time
    async with (
        KubeClient.connect(settings.kubeconfig) as kube,
        _linked(settings) as link,
        EventRecorder.running(kube) as events,
        _leadership(service, kube, link, settings=settings) as leadership,
    ):
        watcher = Watcher(settings, kube, events)
        term = LeaderTerm(watcher, kube, link, settings=settings, leads=leadership.leads)

        async def check_cluster() -> None:
            await kube.request("GET", "/version")

        service.probes.alive("nats", link.check)
        service.probes.alive("kubernetes", check_cluster)
        service.probes.ready("nats", link.check)
        service.probes.ready("dispatch", term.check_open)
        service.probes.ready("controllers", watcher.check_synced)
        count_queue(watcher.queue)
        count_cache(watcher.watches)
        spare_the_cache()
        service.run("memory", collect_now_and_then)
        service.run("stall detector", watcher.stalls.run)
        service.run("supervise", watcher.supervisor.run)
        if settings.debug_port:
            views = Views(
                queue=watcher.queue, watches=watcher.watches, subscriptions=watcher.router.subscriptions, health=watcher.supervisor.health
            )
            service.run("views", partial(views.serve, settings.debug_port))
        service.run("lead", partial(leadership.run, term.run))
        yield


@asynccontextmanager
async def _linked(settings: WatcherSettings) -> AsyncIterator[WatcherLink]:
    """The shard's link over NATS, for the length of the block."""
    stream = StreamSettings(ack_wait_seconds=settings.ack_wait_seconds, replicas=settings.stream_replicas)
    async with connected(settings.nats_url, name="metaloop-watcher") as connection:
        yield NatsWatcherLink(connection, stream, shard=settings.share.name)


@asynccontextmanager
async def _leadership(service: Service, kube: KubeClient, link: WatcherLink, *, settings: WatcherSettings) -> AsyncIterator[Leadership]:
    """Leadership of the shard: without competition, or by an election that hears of resignations for the length of the block."""
    if not settings.leader_election:
        yield SoleWatcher()
        return
    connectivity = BrokerConnectivity(link, patience_seconds=settings.leader_lease_seconds)
    candidate = Candidate(
        kube,
        Election(identity=f"{platform.node()}-{os.getpid()}-{time.time_ns():x}", lease_seconds=settings.leader_lease_seconds),
        lease=(settings.lease_namespace, f"metaloop-watcher-{settings.share.name}"),
        announce_resignation=link.announce_resignation,
        is_cut_off=connectivity.is_cut_off,
    )
    service.run("broker connectivity", connectivity.run)
    async with link.on_resignation(candidate.wake):
        yield candidate


async def _check_connected() -> None:
    raise Unavailable("not connected to NATS yet")
