"""The composition root: builds clients, cache and tasks, and ties their lifetimes together."""

import asyncio
import os
import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from metaloop.common.bus.links import Leads, WatcherLink
from metaloop.common.bus.nats.connection import connected
from metaloop.common.bus.nats.login import Login
from metaloop.common.bus.nats.stream import stream_settings
from metaloop.common.bus.nats.watcher import NatsWatcherLink
from metaloop.common.crashes import restarting
from metaloop.common.errors import Unavailable
from metaloop.common.job import JobKey
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.cluster_uid import cluster_uid
from metaloop.common.kube.discovery import Discovery
from metaloop.common.kube.events import EventRecorder
from metaloop.common.machine import unique_token
from metaloop.common.service import Service
from metaloop.watcher.claims import Claims
from metaloop.watcher.connectivity import BrokerConnectivity
from metaloop.watcher.controller_events import ControllerEvents, LeaderRecorder, Recorder
from metaloop.watcher.controller_numbers import ControllerNumbers
from metaloop.watcher.controllers import InstalledControllers
from metaloop.watcher.core.election import Election
from metaloop.watcher.core.kinds.registry import WORLDS
from metaloop.watcher.core.kinds.world import Worlds
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.dispatch import Dispatcher
from metaloop.watcher.exclusive import ShardExclusivity
from metaloop.watcher.explain import Explainer
from metaloop.watcher.finalizer_releaser import FinalizerReleaser, ReleaseIntervals
from metaloop.watcher.handover import OwnershipHandover
from metaloop.watcher.health_writer import HealthWriter, StatusIntervals
from metaloop.watcher.leader import Candidate, Leadership, SoleWatcher
from metaloop.watcher.memory import collect_now_and_then, spare_the_cache
from metaloop.watcher.metrics import export_caches, export_leadership, export_queue
from metaloop.watcher.reflector import WatchSettings
from metaloop.watcher.related_watches import RelatedWatches
from metaloop.watcher.routing import Routing
from metaloop.watcher.served import Served
from metaloop.watcher.settings import WatcherSettings
from metaloop.watcher.stall_detector import StallDetector
from metaloop.watcher.supervise import Supervisor
from metaloop.watcher.views import Views
from metaloop.watcher.watches import Watches

_REMEMBERED_SYNCS = 5_000
"""Of so many keys, the debug views know how their last sync ended: some MB."""


class Watcher:
    """What a watcher does whether it leads or not: it watches, caches, and routes changes into the queue."""

    def __init__(self, settings: WatcherSettings, kube: KubeClient, recorder: Recorder, *, worlds: Worlds = WORLDS) -> None:
        self.changed = changed = asyncio.Event()
        """Set by whatever may change what should run, or is said of it. The supervisor waits for it."""
        self.served = Served(Discovery(kube), interval_seconds=settings.discovery_interval_seconds, changed=changed)
        self.routing = Routing(
            shard=settings.share.name,
            limits=_limits(settings),
            served=self.served,
            changed=changed,
            namespaces=settings.watched_namespaces,
        )
        self.events = ControllerEvents(recorder)
        self.controllers = InstalledControllers(self.routing.router, self.events, worlds=worlds, share=settings.share, changed=changed)
        self.supervisor = Supervisor(
            routing=self.routing,
            controllers=self.controllers,
            served=self.served,
            watches=Watches(kube, self.routing, changed=changed, settings=_watch_settings(settings)),
            related_watches=RelatedWatches(
                self.routing.subscriptions, self.served, grace_seconds=settings.related_grace_seconds, changed=changed
            ),
            worlds=worlds,
            changed=changed,
        )
        self.numbers = ControllerNumbers(router=self.routing.router, queue=self.routing.queue)
        self.stalls = StallDetector(self.routing.queue.clock)
        self.claims = Claims(
            self.routing.queue,
            observe=self.routing.observer.observe,
            is_behind=self._is_behind,
            lease_seconds=settings.ack_wait_seconds,
        )

    async def check_synced(self) -> None:
        """Return where every controller that can be served is. Raises Unavailable with what is still missing."""
        if problem := self.supervisor.problem():
            raise Unavailable(problem)

    def _is_behind(self, key: JobKey) -> bool:
        """Whether the caches may be older than our own last writes to a unit's objects."""
        return self.stalls.is_behind() or self.routing.observer.is_behind(key, asyncio.get_running_loop().time())


def _limits(settings: WatcherSettings) -> Limits:
    return Limits(
        lease_seconds=settings.ack_wait_seconds,
        gate_seconds=settings.read_your_writes_seconds,
        jobs_of_one_controller=settings.controller_jobs,
        remembered_syncs=_REMEMBERED_SYNCS if settings.debug_port else 0,
    )


def _watch_settings(settings: WatcherSettings) -> WatchSettings:
    return WatchSettings(inactivity_seconds=settings.watch_inactivity_seconds, field_manager=settings.field_manager)


class LeaderTerm:
    """What a watcher does while it leads: it grants leases, publishes jobs and writes the health of controllers."""

    def __init__(  # noqa: PLR0913 - what a term needs of the service
        self, watcher: Watcher, kube: KubeClient, link: WatcherLink, *, settings: WatcherSettings, leads: Leads, identity: str
    ) -> None:
        self._watcher = watcher
        self._kube = kube
        self._link = link
        self._settings = settings
        self._leads = leads
        self._handover = OwnershipHandover(
            link, watcher.routing.ownership, watcher.routing.queue, patience_seconds=settings.ack_wait_seconds
        )
        self._exclusivity = ShardExclusivity(link, identity=identity, is_elected=settings.leader_election, leads=leads)
        self._is_open = False

    async def run(self) -> None:
        """Lead until cancelled."""
        watcher = self._watcher
        await self._link.ensure_stream()  # first: a watcher of another cluster is none of this shard
        async with self._exclusivity.serving():
            await self._serve(watcher)

    async def _serve(self, watcher: Watcher) -> None:
        watcher.routing.queue.begin_term()
        dispatcher = self._dispatcher()
        health = HealthWriter(
            self._kube,
            source=watcher.controllers.health,
            clock=watcher.routing.queue.clock,
            leads=self._leads,
            intervals=StatusIntervals.scaled(self._settings.controller_status_seconds),
        )
        try:
            async with dispatcher.open() as heard_since, asyncio.TaskGroup() as tasks:
                if self._settings.leader_election and watcher.routing.queue.workers:
                    watcher.stalls.assume_stalled(until=heard_since)  # nobody heard what workers wrote while nobody led
                watcher.controllers.begin_term()
                self._is_open = True
                tasks.create_task(self._exclusivity.run(), name="exclusivity")
                tasks.create_task(dispatcher.run(), name="dispatch")
                tasks.create_task(restarting("handover", partial(self._handover.run, leads=self._leads)), name="handover")
                tasks.create_task(restarting("health", health.run), name="health")
                tasks.create_task(restarting("release", self._releaser().run), name="release")
        finally:
            self._is_open = False
            watcher.controllers.end_term()

    async def check_open(self) -> None:
        """Return unless this watcher leads and does not hear the workers yet. Raises Unavailable, or NotAlone."""
        self._exclusivity.check_alone()
        if self._leads() and not self._is_open:
            raise Unavailable("not open for workers yet")

    def _releaser(self) -> FinalizerReleaser:
        watcher = self._watcher
        return FinalizerReleaser(
            self._kube,
            controllers=lambda: watcher.controllers if self._leads() else (),
            served=watcher.served,
            events=watcher.events,
            changed=watcher.changed,
            intervals=ReleaseIntervals(
                first_seconds=2 * self._settings.controller_status_seconds, lease_seconds=self._settings.ack_wait_seconds
            ),
        )

    def _dispatcher(self) -> Dispatcher:
        watcher = self._watcher
        return Dispatcher(self._link, queue=watcher.routing.queue, claims=watcher.claims, routing=watcher.routing.router, leads=self._leads)


@asynccontextmanager
async def build(service: Service, settings: WatcherSettings, *, worlds: Worlds = WORLDS) -> AsyncIterator[None]:
    """The watcher, part of the service for as long as the block lasts. It serves the kinds of `worlds`."""
    service.probes.ready("nats", _check_connected)  # until the first connection is made, which may take any time
    spare_the_cache()
    service.run("memory", collect_now_and_then)
    async with (
        KubeClient.connect(settings.kubeconfig) as kube,
        _linked(settings, cluster=await cluster_uid(kube)) as link,
        assembled(service, settings, kube, link, worlds=worlds) as watcher,
    ):
        export_queue(watcher.routing.queue)
        export_caches(watcher.routing.caches, clock=asyncio.get_running_loop().time)
        watcher.numbers.export()
        yield


@asynccontextmanager
async def assembled(
    service: Service, settings: WatcherSettings, kube: KubeClient, link: WatcherLink, *, worlds: Worlds = WORLDS
) -> AsyncIterator[Watcher]:
    """The watcher on a connection to its cluster and a link to its bus, for as long as the block lasts."""
    async with (
        EventRecorder.running(kube) as events,
        _leadership(service, kube, link, settings=settings, identity=(identity := _identity())) as leadership,
    ):
        watcher = Watcher(settings, kube, LeaderRecorder(events, leads=leadership.leads), worlds=worlds)
        term = LeaderTerm(watcher, kube, link, settings=settings, leads=leadership.leads, identity=identity)

        service.probes.ready("nats", link.check)
        service.probes.ready("job stream", link.check_stream)
        service.probes.ready("kubernetes", lambda: kube.request("GET", "/version"))
        service.probes.ready("dispatch", term.check_open)
        service.probes.ready("controllers", watcher.check_synced)
        export_leadership(_lease_name(settings), leadership.leads)
        service.run("stall detector", watcher.stalls.run)
        service.run("supervise", watcher.supervisor.run)
        if settings.debug_port:
            views = Views(
                queue=watcher.routing.queue,
                caches=watcher.routing.caches,
                subscriptions=watcher.routing.subscriptions,
                health=watcher.controllers.health,
                numbers=watcher.numbers,
                explainer=Explainer(running=watcher.routing.running, caches=watcher.routing.caches, queue=watcher.routing.queue),
            )
            service.run("views", partial(views.serve, settings.debug_listener, token=settings.debug_token))
        service.run("lead", partial(leadership.run, term.run))
        yield watcher


@asynccontextmanager
async def _linked(settings: WatcherSettings, *, cluster: str) -> AsyncIterator[WatcherLink]:
    """The shard's link over NATS, for the length of the block."""
    stream = stream_settings(settings, cluster=cluster)
    async with connected(settings.nats_url, name="metaloop-watcher", login=Login.of(settings)) as connection:
        yield NatsWatcherLink(connection, stream, shard=settings.share.name)


@asynccontextmanager
async def _leadership(
    service: Service, kube: KubeClient, link: WatcherLink, *, settings: WatcherSettings, identity: str
) -> AsyncIterator[Leadership]:
    """Leadership of the shard, by an election if several watchers may run. Hears of resignations within the block."""
    if not settings.leader_election:
        yield SoleWatcher()
        return
    connectivity = BrokerConnectivity(link, patience_seconds=settings.leader_lease_seconds)
    candidate = Candidate(
        kube,
        Election(identity=identity, lease_seconds=settings.leader_lease_seconds),
        lease=(settings.lease_namespace, _lease_name(settings)),
        announce_resignation=link.announce_resignation,
        is_cut_off=connectivity.is_cut_off,
    )
    service.run("broker connectivity", connectivity.run)
    async with link.on_resignation(candidate.wake):
        yield candidate


def _lease_name(settings: WatcherSettings) -> str:
    return f"metaloop-watcher-{settings.share.name}"


def _identity() -> str:
    """The identity of this process, like no other's."""
    return f"{platform.node()}-{os.getpid()}-{unique_token()[:16]}"


async def _check_connected() -> None:
    raise Unavailable("not connected to NATS yet")
