"""Opens connections to webhooks, only to addresses that the operator permits, and records each step of it."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

import aiohttp
from aiohttp.abc import ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.tracing import Trace

from metaloop.common.keepalive import KeepAlive, enable_keep_alive
from metaloop.hookgateway import steps
from metaloop.hookgateway.accept_probe import current_accept_probe
from metaloop.hookgateway.core.address import AddressPolicy
from metaloop.hookgateway.steps import Steps, current_steps

DNS_CACHE_SECONDS: Final = 2
"""How long a resolved name is reused. One look-up serves a burst; a Service that moves is noticed soon."""

WEBHOOKS_KEEP_ALIVE: Final = KeepAlive(idle_seconds=5, interval_seconds=2, probes=3, unacknowledged_seconds=5)
"""Ends connections to a node that vanished: during a call, while idle, or before the request is acknowledged."""


class AddressRefused(PermissionError):
    """The operator's policy denies this address.

    It is an OSError, since aiohttp collects those for all addresses of a name.
    """


class Dialer(aiohttp.TCPConnector):
    """aiohttp's connector with an address policy, which records the steps of the call that it connects for.

    The policy is applied in the socket factory, the last to see an address before the connection is made. However a
    host is written, and however often it is resolved, the address that is checked is the one that is used.
    """

    def __init__(self, policy: AddressPolicy, *, keepalive_seconds: float) -> None:
        super().__init__(
            limit=0,  # the bulkhead limits calls; a second, hidden queue here would count as the webhook's time
            ttl_dns_cache=DNS_CACHE_SECONDS,
            keepalive_timeout=keepalive_seconds,
            socket_factory=lambda address_info: _socket(address_info, policy),
        )

    async def _resolve_host(self, host: str, port: int, traces: Sequence[Trace] | None = None) -> list[ResolveResult]:
        marked = current_steps.get()
        marked.mark(steps.DNS_START)
        found = await super()._resolve_host(host, port, traces)
        marked.mark(steps.DNS_DONE)
        return found

    async def _wrap_create_connection(
        self, *args: Callable[[], ResponseHandler], **kwargs: Any
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        marked, over_tls = current_steps.get(), bool(kwargs.get("ssl"))
        marked.mark(steps.CONNECT_START)
        # The event loop creates the protocol when the socket is connected and before TLS begins.
        connection = await super()._wrap_create_connection(_marking(args[0], marked, over_tls=over_tls), **kwargs)
        if over_tls:
            marked.mark(steps.TLS_DONE)
        return connection


def _marking(protocol: Callable[[], ResponseHandler], marked: Steps, *, over_tls: bool) -> Callable[[], ResponseHandler]:
    def connected() -> ResponseHandler:
        marked.mark(steps.CONNECT_DONE)
        if over_tls:
            marked.mark(steps.TLS_START)
        return protocol()

    return connected


def _socket(address_info: tuple[int, int, int, str, tuple[Any, ...]], policy: AddressPolicy) -> socket.socket:
    family, kind, protocol, _, address = address_info
    if not policy.permits(str(address[0])):
        raise AddressRefused("the operator's address policy denies it")
    opened = socket.socket(family=family, type=kind, proto=protocol)
    enable_keep_alive(opened, WEBHOOKS_KEEP_ALIVE)
    current_accept_probe.get().connecting(opened)
    return opened
