"""The composition root: builds the gateway from its settings and ties the lifetimes of its parts together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

from metaloop.common.crashes import restarting
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.errors import InvalidKubeconfig
from metaloop.common.machine import monotonic
from metaloop.common.service import Service
from metaloop.common.telemetry import fields, get_logger
from metaloop.hookgateway.call import Gateway, Limits
from metaloop.hookgateway.call_route import CallRoute
from metaloop.hookgateway.core.breaker import Rules
from metaloop.hookgateway.core.budgets import ByteBudget
from metaloop.hookgateway.core.credentials import Credentials
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.core.etag import EtagCache
from metaloop.hookgateway.credential_store import CredentialStore
from metaloop.hookgateway.dial import Dialer
from metaloop.hookgateway.exchange import Bounds
from metaloop.hookgateway.metrics import Metrics, export_connect_limits
from metaloop.hookgateway.pool import OpenPool, Pool
from metaloop.hookgateway.settings import Settings
from metaloop.hookgateway.watch_objects import ClusterObjects, NoCluster, ObjectWatcher
from metaloop.hookgateway.webhook import Transport

CLEANUP_SECONDS: Final = 1.0
"""How often expired and unused things are dropped: the finest that cacheCleanupSeconds can ask for."""

log = get_logger()


@asynccontextmanager
async def build(service: Service, settings: Settings) -> AsyncIterator[None]:
    """Run the gateway as part of the service while the block lasts."""
    async with AsyncExitStack() as stack:
        objects = await cluster(stack, settings.kubeconfig)
        await stack.enter_async_context(assembled(service, settings, objects))
        yield


@asynccontextmanager
async def assembled(service: Service, settings: Settings, objects: ObjectWatcher, *, opened: OpenPool | None = None) -> AsyncIterator[None]:
    """The gateway, which reads Secrets and ConfigMaps from `objects`, while the block lasts."""
    async with AsyncExitStack() as stack:
        credentials = CredentialStore(objects)
        gateway = gateway_of(settings, credentials, opened=opened)
        stack.push_async_callback(gateway.close)
        calls = CallRoute(gateway, tokens=settings.accepted_tokens, max_request_bytes=settings.max_request_bytes, stopping=service.stopping)
        calls.mount(service.app)
        export_connect_limits(gateway.connect_limits)
        service.run("credentials", credentials.run)
        clean_up = partial(clean_up_forever, gateway, idle_seconds=settings.idle_endpoint_seconds)
        service.run("cleanup", partial(restarting, "cleanup", clean_up))
        service.on_drain("calls", calls.finished)
        yield


async def cluster(stack: AsyncExitStack, kubeconfig: str) -> ObjectWatcher:
    """Where Secrets and ConfigMaps are read from. Without a cluster the gateway serves webhooks that need none."""
    try:
        return ClusterObjects(await stack.enter_async_context(KubeClient.connect(kubeconfig)))
    except InvalidKubeconfig as problem:
        log.warning("credentials.no_cluster", **{fields.ERROR: str(problem)})
        return NoCluster(str(problem))


def gateway_of(settings: Settings, credentials: CredentialStore, *, opened: OpenPool | None = None) -> Gateway:
    """The gateway that these settings describe. `opened` opens connections to webhooks; over HTTP where it is None."""
    transport = Transport(
        opened=opened or partial(_opened, settings),
        breaker_rules=Rules(
            threshold=settings.breaker_threshold,
            shortest_seconds=settings.breaker_shortest_seconds,
            longest_seconds=settings.breaker_longest_seconds,
        ),
        bounds=Bounds(max_bytes=settings.max_response_bytes, unfinished=ByteBudget(settings.max_unfinished_bytes)),
    )
    limits = Limits(
        calls_per_controller=settings.calls_per_controller,
        put_off_seconds=settings.calls_put_off_seconds,
        max_response_bytes=settings.max_response_bytes,
    )
    return Gateway(transport, limits=limits, cache=EtagCache(settings.etag_cache_bytes), credentials=credentials, metrics=Metrics())


def _opened(settings: Settings, endpoint: Endpoint, credentials: Credentials) -> Pool:
    return Pool(
        Dialer(settings.address_policy, keepalive_seconds=settings.keepalive_seconds),
        credentials,
        over_tls=endpoint.scheme == "https",
        proxy_from_environment=settings.proxy_from_environment,
    )


async def clean_up_forever(gateway: Gateway, *, idle_seconds: float) -> None:
    """Drop what has expired or has not been used for so long, until cancelled."""
    while True:
        await asyncio.sleep(CLEANUP_SECONDS)
        await gateway.clean_up(unused_since=monotonic() - idle_seconds)
