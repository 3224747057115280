"""Sends one request to one webhook, with its timeout, TLS and credentials."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from yarl import URL

from metaloop.common.hooks.call import TURN_SECONDS
from metaloop.common.http.body import Body
from metaloop.common.machine import monotonic
from metaloop.hookgateway.accept_probe import AcceptProbe, current_accept_probe
from metaloop.hookgateway.circuit import Circuit
from metaloop.hookgateway.connect_limiter import ConnectLimiter
from metaloop.hookgateway.core.breaker import Rules
from metaloop.hookgateway.core.budgets import RetryBudget
from metaloop.hookgateway.core.credentials import Credentials
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.core.verdict import Answer
from metaloop.hookgateway.errors import ConnectionLost, ConnectionNotAccepted, EndpointBusy, EndpointDown, TimedOut
from metaloop.hookgateway.exchange import Bounds, Request
from metaloop.hookgateway.pool import Connections, OpenPool
from metaloop.hookgateway.steps import LIMITER_PASSED, current_steps

_MAX_ATTEMPTS: Final = 20
"""How often a call is sent to an endpoint that accepts others and not this one."""
_PUT_OFF_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """What all webhooks share: how connections are opened, bounds on answers, rules of circuits."""

    opened: OpenPool
    bounds: Bounds
    breaker_rules: Rules = field(default_factory=Rules)
    turn_seconds: float = TURN_SECONDS
    """How long a call waits at most for the endpoint to accept earlier ones."""


class Webhook:
    """One endpoint with its circuit, its connect limiter, its connections and its retry budget."""

    def __init__(self, endpoint: Endpoint, transport: Transport) -> None:
        self.endpoint = endpoint
        self.used_at = monotonic()
        """When it was called last."""

        self._transport = transport
        self._circuit = Circuit(endpoint, transport.breaker_rules)
        self._limiter = ConnectLimiter(endpoint)
        self._retries = RetryBudget()
        self._url = URL(endpoint.url, encoded=True)
        self._pool: Connections | None = None

    @property
    def connect_limit(self) -> float:
        """How many calls may wait for the endpoint to accept them; infinite while there is no limit."""
        return self._limiter.maximum

    async def send(self, body: Body, *, headers: dict[str, str], credentials: Credentials, timeout_seconds: float) -> Answer:
        """The webhook's answer, unchecked.

        Raises the HookError that says why there is none, at the latest after the wait for its turn and the timeout.
        """
        self.used_at = monotonic()
        request = Request(url=self._url, headers=headers, body=body)
        turn_by = asyncio.get_running_loop().time() + self._transport.turn_seconds
        for _ in range(_MAX_ATTEMPTS - 1):
            await self._wait_for_turn(turn_by)
            try:
                return await self._send_limited(request, credentials, timeout_seconds)
            except ConnectionNotAccepted:
                continue
        await self._wait_for_turn(turn_by)
        return await self._send_limited(request, credentials, timeout_seconds)

    async def close(self) -> None:
        """Close idle connections now, and the others as their calls end."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.retire()

    async def discard(self) -> None:
        """Close its connections and remove it from the metrics: it is no longer called."""
        self._circuit.remove_metrics()
        await self.close()

    async def _wait_for_turn(self, turn_by: float) -> None:
        """Return when the connect limiter allows another call. Raises EndpointBusy if that takes too long."""
        if self._limiter.try_acquire():
            return
        try:
            async with asyncio.timeout_at(turn_by):
                await self._limiter.acquire()
        except TimeoutError as error:
            message = f"{self.endpoint.address} did not accept earlier calls within {self._transport.turn_seconds:g} s"
            raise EndpointBusy(message, after_seconds=_PUT_OFF_SECONDS) from error
        current_steps.get().mark(LIMITER_PASSED)

    async def _send_limited(self, request: Request, credentials: Credentials, timeout_seconds: float) -> Answer:
        """The answer to a request whose turn it is. The timeout begins now.

        Raises ConnectionNotAccepted if the endpoint accepts other connections and not this one.
        """
        probe = AcceptProbe(self._limiter, asyncio.timeout(timeout_seconds))
        current_accept_probe.set(probe)
        was_answered = False
        try:
            with self._circuit.attempt() as attempt:
                answer = await self._send_in_time(request, credentials, timeout_seconds, probe)
                attempt.answered(answer.status)
            was_answered = True
            return answer
        finally:
            probe.close(was_answered=was_answered)

    async def _send_in_time(self, request: Request, credentials: Credentials, timeout_seconds: float, probe: AcceptProbe) -> Answer:
        try:
            async with probe.timeout:
                return await self._send(request, credentials)
        except TimeoutError as error:
            if probe.has_given_up:
                raise ConnectionNotAccepted(f"{self.endpoint.address} accepts fewer connections at once than there are calls") from error
            raise TimedOut(f"{self.endpoint.address} did not finish its answer within {timeout_seconds:g} s") from error

    async def _send(self, request: Request, credentials: Credentials) -> Answer:
        """The answer, after a second attempt if the first one met a dead connection.

        An idle connection may have been closed by the peer a moment ago, for instance because the webhook's pod is
        being replaced. That says nothing about the webhook, so the request is sent once more.
        """
        self._retries.deposit()
        try:
            return await self._send_once(request, credentials)
        except ConnectionLost:
            if not (current_steps.get().shows_stale_connection and self._retries.try_withdraw()):
                raise
        return await self._send_once(request, credentials)

    async def _send_once(self, request: Request, credentials: Credentials) -> Answer:
        pool = await self._pool_with(credentials)
        try:
            return await pool.answer_to(request, bounds=self._transport.bounds)
        except (asyncio.CancelledError, EndpointDown):
            # The idle connections to the same peer may be broken for the same reason: the next call makes a new one.
            if self._pool is pool:
                await self.close()
            raise

    async def _pool_with(self, credentials: Credentials) -> Connections:
        """The pool for these credentials. If they differ from those of the last call, the former pool retires."""
        if self._pool is not None and self._pool.credentials is credentials:
            return self._pool
        fresh = self._transport.opened(self.endpoint, credentials)
        await self.close()
        self._pool = fresh
        return fresh
