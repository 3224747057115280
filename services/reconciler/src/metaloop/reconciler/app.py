"""The composition root: builds clients, stages and the worker, and ties their lifetimes together."""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial

from metaloop.common.api.kinds import KINDS, Kinds
from metaloop.common.bus.links import WorkerLink
from metaloop.common.bus.nats.connection import connected
from metaloop.common.bus.nats.login import Login
from metaloop.common.bus.nats.stream import stream_settings
from metaloop.common.bus.nats.worker import NatsWorkerLink
from metaloop.common.crashes import restarting
from metaloop.common.http.peer import Asked, Peer
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.cluster_uid import cluster_uid
from metaloop.common.kube.discovery import Discovery
from metaloop.common.kube.events import EventRecorder
from metaloop.common.service import Build, Service
from metaloop.reconciler.children_writer import ChildrenWriter
from metaloop.reconciler.cluster_reader import ClusterReader
from metaloop.reconciler.core.kinds.registry import SYNCS, Syncs
from metaloop.reconciler.deletion_guards import DeletionGuards
from metaloop.reconciler.hook_caller import HookCaller
from metaloop.reconciler.large_parents import SWITCH_SECONDS, LargeParents
from metaloop.reconciler.observe import Observer
from metaloop.reconciler.parent_writer import ParentWriter
from metaloop.reconciler.schemas import Schemas
from metaloop.reconciler.server_side_writer import ServerSideWriter
from metaloop.reconciler.settings import Settings
from metaloop.reconciler.strategies import Strategies
from metaloop.reconciler.sync import Dependencies, Syncer
from metaloop.reconciler.sync_numbers import numbers
from metaloop.reconciler.worker import Worker, WorkerSettings

_GATEWAY_IDLE_SECONDS = 30.0
"""Less than the gateway keeps an idle connection: it should not close one that a call is about to go out on."""
_CONNECT_SECONDS = 5.0


def build_from(settings: Settings, *, kinds: Kinds = KINDS, syncs: Syncs = SYNCS) -> Build:
    """What builds the reconciler as the settings want it, for these kinds of controllers."""

    @asynccontextmanager
    async def build(service: Service) -> AsyncIterator[None]:
        async with KubeClient.connect(settings.kubeconfig) as kube:
            uid = await cluster_uid(kube)
            async with _linked(settings, cluster=uid) as link, gateway_of(settings) as gateway:
                peers = Peers(link=link, kube=kube, gateway=gateway, cluster_uid=uid)
                async with assembled(service, settings, peers, kinds=kinds, syncs=syncs):
                    yield

    return build


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """Whom a reconciler talks to."""

    link: WorkerLink
    kube: KubeClient
    gateway: Asked
    """The hook gateway."""
    cluster_uid: str = ""
    """The cluster's UID; empty where it may not be read."""


@asynccontextmanager
async def assembled(
    service: Service, settings: Settings, peers: Peers, *, kinds: Kinds = KINDS, syncs: Syncs = SYNCS
) -> AsyncIterator[None]:
    """The reconciler, connected to its peers, for as long as the block lasts."""
    link, kube = peers.link, peers.kube
    sys.setswitchinterval(SWITCH_SECONDS)
    async with EventRecorder.running(kube) as recorder:
        hooks = HookCaller(peers.gateway, token=settings.gateway_token)
        server_side = ServerSideWriter(recorder=recorder, field_manager=settings.field_manager)
        schemas = Schemas(kube)
        service.run("schemas", partial(restarting, "schemas", schemas.run))
        dependencies = Dependencies(
            api=kube,
            children=ChildrenWriter(width=settings.child_writes, server_side=server_side, on_drift=schemas.recheck),
            hooks=hooks,
            parents=ParentWriter(),
            subscriptions=link,
            recorder=recorder,
            strategies=Strategies(schemas=schemas, default=settings.apply_strategy),
            guards=DeletionGuards(limits=settings.deletion_limits),
            cluster=ClusterReader(Discovery(kube), uid=peers.cluster_uid, width=settings.child_writes),
        )
        with ThreadPoolExecutor(1, thread_name_prefix="large parents") as executor:
            large = LargeParents(executor)
            syncer = Syncer(dependencies=dependencies, observer=Observer(kinds), syncs=syncs, large=large)
            worker = _worker(link, syncer, settings, large=large)
            numbers.export_workers(worker.jobs_by_controller, most=settings.waiting_jobs)
            _register(service, worker, link=link, kube=kube)
            yield


@asynccontextmanager
async def _linked(settings: Settings, *, cluster: str) -> AsyncIterator[WorkerLink]:
    """A worker's link over NATS, for as long as the block lasts."""
    stream = stream_settings(settings, cluster=cluster)
    async with connected(settings.nats_url, name="metaloop-reconciler", login=Login.of(settings)) as connection:
        yield NatsWorkerLink(connection, stream)


@asynccontextmanager
async def gateway_of(settings: Settings) -> AsyncIterator[Peer]:
    """The gateway, for as long as the block lasts.

    A call may take as long as its webhook's timeout, which the gateway keeps. HookCaller gives up a while after that.
    """
    tls = _gateway_tls(settings)
    gateway = Peer(
        settings.gateway_url,
        tls=tls,
        idle_seconds=_GATEWAY_IDLE_SECONDS,
        longest_seconds=settings.gateway_connection_seconds,
        connect_seconds=_CONNECT_SECONDS,
    )
    with closing(gateway):
        yield gateway


def _gateway_tls(settings: Settings) -> ssl.SSLContext | None:
    """How we know a gateway that is called by https, and what we show it; None for http.

    Reading the system's authorities takes time, so it is left out for http.
    """
    if not settings.gateway_url.startswith("https:"):
        return None
    context = ssl.create_default_context(cafile=settings.gateway_ca_file or None)
    if settings.gateway_client_cert_file:
        context.load_cert_chain(settings.gateway_client_cert_file, settings.gateway_client_key_file or None)
    return context


def _worker(link: WorkerLink, syncer: Syncer, settings: Settings, *, large: LargeParents) -> Worker:
    capacity = WorkerSettings(
        active_jobs=settings.active_jobs,
        waiting_jobs=settings.waiting_jobs,
        ack_wait_seconds=settings.ack_wait_seconds,
        drain_seconds=settings.drain_seconds,
    )
    return Worker(link, sync=syncer.sync, settings=capacity, room_for=large.room_for)


def _register(service: Service, worker: Worker, *, link: WorkerLink, kube: KubeClient) -> None:
    is_over = asyncio.Event()

    async def work() -> None:
        try:
            await worker.run()
        finally:
            is_over.set()

    async def finish_jobs() -> None:
        worker.stop()
        await is_over.wait()

    service.run("worker", work)
    service.on_drain("jobs", finish_jobs)
    service.probes.ready("nats", link.check)
    service.probes.ready("job stream", link.check_stream)
    service.probes.ready("kubernetes", lambda: kube.request("GET", "/version"))
