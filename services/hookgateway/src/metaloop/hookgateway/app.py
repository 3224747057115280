"""The composition root: builds the gateway and its server, and ties their lifetimes together."""

import asyncio
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
import uvicorn
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from metaloop.hookgateway.call import Gateway, Limits
from metaloop.hookgateway.core.breaker import ByteBudget, Rules
from metaloop.hookgateway.core.etag import EtagCache
from metaloop.hookgateway.endpoints import CallRoute, application
from metaloop.hookgateway.metrics import Metrics
from metaloop.hookgateway.settings import Settings
from metaloop.hookgateway.webhook import Transport

log = structlog.get_logger()


async def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then until the calls in flight are over."""
    metrics = Metrics(CollectorRegistry())
    gateway = build_gateway(settings, metrics)
    call_route = CallRoute(gateway, token=settings.gateway_token, max_request_bytes=settings.max_request_bytes)
    server = Server(server_config(settings, application(call_route, metrics.registry)))
    try:
        await serve(server, call_route, listening_socket(settings))
    finally:
        await gateway.close()


def build_gateway(settings: Settings, metrics: Metrics) -> Gateway:
    """The gateway as the settings want it."""
    transport = Transport(
        addresses=settings.address_policy,
        breaker_rules=Rules(
            threshold=settings.breaker_threshold,
            shortest_seconds=settings.breaker_shortest_seconds,
            longest_seconds=settings.breaker_longest_seconds,
        ),
        unfinished=ByteBudget(settings.max_unfinished_bytes),
        max_response_bytes=settings.max_response_bytes,
        keepalive_seconds=settings.keepalive_seconds,
        proxy_from_environment=settings.proxy_from_environment,
    )
    limits = Limits(
        calls_per_controller=settings.calls_per_controller,
        put_off_seconds=settings.calls_put_off_seconds,
        max_response_bytes=settings.max_response_bytes,
    )
    return Gateway(transport, limits=limits, cache=EtagCache(settings.etag_cache_bytes), metrics=metrics)


def server_config(settings: Settings, app: FastAPI) -> uvicorn.Config:
    """How uvicorn serves it."""
    return uvicorn.Config(
        app,
        http="httptools",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=int(settings.drain_seconds),
        ssl_certfile=settings.gateway_tls_cert_file or None,
        ssl_keyfile=settings.gateway_tls_key_file or None,
        ssl_ca_certs=settings.gateway_client_ca_file or None,
        ssl_cert_reqs=ssl.CERT_REQUIRED if settings.gateway_client_ca_file else ssl.CERT_NONE,
    )


def listening_socket(settings: Settings) -> socket.socket:
    """The socket to serve on; with `reuse_port`, one of several processes that share the port."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if settings.reuse_port:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listening.bind((settings.host, settings.port))
    return listening


class Server(uvicorn.Server):
    """uvicorn without its own idea of signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to this service."""
        yield


async def serve(server: Server, call_route: CallRoute, listening: socket.socket) -> None:
    """Serve until a signal; from then on refuse new calls, and let those in flight end."""

    def drain() -> None:
        call_route.draining = True
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, drain)
    log.info("service.started", host=listening.getsockname()[0], port=listening.getsockname()[1])
    await server.serve(sockets=[listening])
    log.info("service.stopped")
