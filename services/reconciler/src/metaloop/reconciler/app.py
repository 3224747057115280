"""The composition root: builds clients, stages and the worker, and ties their lifetimes together."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from metaloop.common.bus.connect import Bus, connected
from metaloop.common.bus.stream import JobStream, StreamSettings
from metaloop.common.keepalive import Patience, keep_alive
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.events import EventRecorder
from metaloop.common.service import Build, Service
from metaloop.reconciler.apply import Applier
from metaloop.reconciler.guards import Guards
from metaloop.reconciler.hook import HookCaller
from metaloop.reconciler.parent import ParentWriter
from metaloop.reconciler.related import BusFollower
from metaloop.reconciler.revisions import RevisionWriter
from metaloop.reconciler.schemas import Schemas
from metaloop.reconciler.serverside import ServerSide
from metaloop.reconciler.settings import Settings
from metaloop.reconciler.strategies import Strategies
from metaloop.reconciler.sync import Syncer
from metaloop.reconciler.worker import Worker, WorkerSettings

_GATEWAY_IDLE_SECONDS = 30.0
"""Less than the gateway keeps an idle connection: it should not close one that a call is about to go out on."""
_CONNECT_SECONDS = 5.0
_GATEWAYS_PATIENCE = Patience(idle_seconds=15, interval_seconds=5, probes=3)


def build_from(settings: Settings) -> Build:
    """What builds the reconciler as the settings want it."""

    @asynccontextmanager
    async def build(service: Service) -> AsyncIterator[None]:
        async with (
            connected(settings.nats_url, name="metaloop-reconciler") as bus,
            KubeClient.connect(settings.kubeconfig) as kube,
            gateway_session(settings) as session,
            EventRecorder.running(kube) as recorder,
        ):
            hooks = HookCaller(session, gateway_url=settings.gateway_url, token=settings.gateway_token)
            server_side = ServerSide(api=kube, recorder=recorder, field_manager=settings.field_manager)
            schemas = Schemas(kube)
            service.run("schemas", schemas.run)
            applier = Applier(kube, width=settings.child_writes, server_side=server_side, on_drift=schemas.suspect)
            strategies = Strategies(schemas=schemas, default=settings.apply_strategy)
            syncer = Syncer(
                applier=applier,
                hooks=hooks,
                parents=ParentWriter(kube),
                revisions=RevisionWriter(kube),
                follower=BusFollower(bus),
                recorder=recorder,
                strategies=strategies,
                guards=Guards(limits=settings.deletion_limits),
            )
            _register(service, _worker(bus, syncer, settings), bus=bus, kube=kube)
            yield

    return build


def gateway_session(settings: Settings) -> aiohttp.ClientSession:
    """The connections to the gateway. A call may take as long as its webhook's timeout, which the gateway keeps."""
    connector = aiohttp.TCPConnector(
        limit=settings.waiting_jobs,
        keepalive_timeout=_GATEWAY_IDLE_SECONDS,
        socket_factory=_watched_socket,
        ssl=_gateway_tls(settings),
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        auto_decompress=False,
    )


def _gateway_tls(settings: Settings) -> ssl.SSLContext | bool:
    """How we know a gateway that is called by https, and what we show it; the authorities of the system take their time to read."""
    if not settings.gateway_url.startswith("https:"):
        return True
    context = ssl.create_default_context(cafile=settings.gateway_ca_file or None)
    if settings.gateway_client_cert_file:
        context.load_cert_chain(settings.gateway_client_cert_file, settings.gateway_client_key_file or None)
    return context


def _watched_socket(address: aiohttp.connector.AddrInfoType) -> socket.socket:
    """A socket that notices within half a minute that the other machine is gone, although a call says nothing while its webhook thinks."""
    family, kind, protocol, _, _ = address
    watched = socket.socket(family, kind, protocol)
    keep_alive(watched, _GATEWAYS_PATIENCE)
    return watched


def _worker(bus: Bus, syncer: Syncer, settings: Settings) -> Worker:
    stream = JobStream(bus, StreamSettings(ack_wait_seconds=settings.ack_wait_seconds, replicas=settings.stream_replicas))
    capacity = WorkerSettings(
        active_jobs=settings.active_jobs, waiting_jobs=settings.waiting_jobs, ack_wait_seconds=settings.ack_wait_seconds
    )
    return Worker(bus, stream, sync=syncer.sync, settings=capacity)


def _register(service: Service, worker: Worker, *, bus: Bus, kube: KubeClient) -> None:
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
    service.probes.alive("nats", bus.check)
    service.probes.ready("nats", bus.check)
    service.probes.ready("kubernetes", lambda: kube.request("GET", "/version"))
