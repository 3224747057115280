"""Sends one request to one webhook, with its timeout, TLS and credentials."""

import asyncio
import io
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from metaloop.common.telemetry import fields, get_logger
from metaloop.hookgateway import steps
from metaloop.hookgateway.core.address import AddressPolicy
from metaloop.hookgateway.core.breaker import Breaker, ByteBudget, Permit, RetryBudget, Rules, Wait
from metaloop.hookgateway.core.coding import ACCEPTED
from metaloop.hookgateway.core.credentials import Credentials
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.core.verdict import Answer, is_sign_of_life
from metaloop.hookgateway.dial import AddressRefused, Dialer
from metaloop.hookgateway.errors import (
    AddressDenied,
    BodyTooLarge,
    CircuitOpen,
    ConnectFailed,
    ConnectionLost,
    EndpointDown,
    Overloaded,
    TimedOut,
    TlsFailed,
)
from metaloop.hookgateway.metrics import circuit
from metaloop.hookgateway.pool import Pool
from metaloop.hookgateway.steps import current_steps

QUOTED_BYTES: Final = 16 * 1024
"""How much is read of an answer whose body will only be quoted in an error."""

SENT_AT_ONCE_BYTES: Final = 2**20
"""Up to this size a request goes to the socket in one piece; a larger one in parts, between which other calls get their turn."""

AWAITED: Final = {"Content-Type": "application/json", "Accept-Encoding": ACCEPTED, "User-Agent": "metaloop-hookgateway"}
"""The headers of every request."""


log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """What all webhooks share: where connections may lead, and how much may come over them."""

    addresses: AddressPolicy
    breaker_rules: Rules = field(default_factory=Rules)
    unfinished: ByteBudget
    max_response_bytes: int
    keepalive_seconds: float
    proxy_from_environment: bool = False


class Webhook:
    """One endpoint as we talk to it: its connections, its circuit breaker, and what it may still cost in retries."""

    def __init__(self, endpoint: Endpoint, transport: Transport) -> None:
        self.endpoint = endpoint
        self.breaker = Breaker(transport.breaker_rules)
        self.used_at = monotonic()
        """When it was last called."""

        self._transport = transport
        self._retries = RetryBudget()
        self._url = URL(endpoint.url, encoded=True)
        self._where = f"{endpoint.host}:{endpoint.port}"
        self._pool: Pool | None = None

    async def send(self, body: bytes, *, headers: dict[str, str], credentials: Credentials, timeout_seconds: float) -> Answer:
        """The webhook's answer, unjudged, whole within the timeout; raises the HookError that says why there is none."""
        self.used_at = monotonic()
        permit = self._permit()
        try:
            async with asyncio.timeout(timeout_seconds):
                answer = await self._send(body, headers, credentials)
        except TimeoutError as error:
            self._tell(permit, is_up=False)
            raise TimedOut(f"{self._where} did not finish its answer within {timeout_seconds:g} s") from error
        except EndpointDown:
            self._tell(permit, is_up=False)
            raise
        except BaseException:
            self.breaker.abandoned(permit)  # whatever it was, a probe must not keep its place
            raise
        self._tell(permit, is_up=is_sign_of_life(answer.status))
        return answer

    async def close(self) -> None:
        """Close idle connections now, and the others as their calls end."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.retire()

    def _permit(self) -> Permit:
        with self._watched_circuit():
            permit = self.breaker.ask(now=monotonic())
        if isinstance(permit, Wait):
            raise CircuitOpen(f"{self._where} did not answer the last calls", after_seconds=permit.seconds)
        return permit

    def _tell(self, permit: Permit, *, is_up: bool) -> None:
        with self._watched_circuit():
            if is_up:
                self.breaker.succeeded(permit)
            else:
                self.breaker.failed(permit, now=monotonic())

    @contextmanager
    def _watched_circuit(self) -> Iterator[None]:
        """Make known whether the block opened or closed the circuit."""
        before = self.breaker.state
        yield
        state = self.breaker.state
        if state is not before:
            circuit.labels(self.endpoint.label).set(state)
            log.warning(
                "circuit.changed", **{fields.ENDPOINT: self.endpoint.label, "state": state.name.lower(), "before": before.name.lower()}
            )

    async def _send(self, body: bytes, headers: dict[str, str], credentials: Credentials) -> Answer:
        """The answer, after a second try if the first one met a connection that was dead already.

        A connection that had been idle may turn out to have been closed from the other side just now, for instance because the webhook's
        pod is being replaced. That says nothing of the webhook, so the request then goes out once more.
        """
        self._retries.earn()
        try:
            return await self._send_once(body, headers, credentials)
        except ConnectionLost:
            if not (current_steps.get().shows_stale_connection and self._retries.spend()):
                raise
        return await self._send_once(body, headers, credentials)

    async def _send_once(self, body: bytes, headers: dict[str, str], credentials: Credentials) -> Answer:
        pool = await self._pool_with(credentials)
        try:
            async with pool.in_use() as session:
                with _as_hook_errors(self._where):
                    return await self._exchange(session, body, headers, tls=pool.tls)
        except (asyncio.CancelledError, EndpointDown):
            # What made this connection fail or hang may have befallen the idle ones to the same peer: the next call dials anew.
            if self._pool is pool:
                await self.close()
            raise

    async def _pool_with(self, credentials: Credentials) -> Pool:
        """The pool for these credentials. When they are not those of the last call, its pool retires with the calls that it carries."""
        if self._pool is not None and self._pool.credentials is credentials:
            return self._pool
        transport = self._transport
        fresh = Pool(
            Dialer(transport.addresses, keepalive_seconds=transport.keepalive_seconds),
            credentials,
            over_tls=self.endpoint.scheme == "https",
            proxy_from_environment=transport.proxy_from_environment,
        )
        await self.close()
        self._pool = fresh
        return fresh

    async def _exchange(
        self, session: aiohttp.ClientSession, body: bytes, headers: dict[str, str], *, tls: ssl.SSLContext | None
    ) -> Answer:
        response = await session.post(
            self._url,
            data=body if len(body) <= SENT_AT_ONCE_BYTES else io.BytesIO(body),
            headers=CIMultiDict(AWAITED, **headers),
            allow_redirects=False,
            ssl=True if tls is None else tls,
        )
        marked = current_steps.get()
        marked.mark(steps.FIRST_BYTE)
        try:
            content = await self._whole(response) if response.status == 200 else await _beginning(response)
        finally:
            response.close()  # unless it was read to its end: then the connection is back in the pool already
        marked.mark(steps.BODY_DONE)
        return _answer(response, content)

    async def _whole(self, response: aiohttp.ClientResponse) -> bytes:
        """All of the body. Its length is counted as it comes; what is announced is only a reason to give up sooner."""
        limit, unfinished = self._transport.max_response_bytes, self._transport.unfinished
        if (response.content_length or 0) > limit:
            raise BodyTooLarge(f"webhook announced {response.content_length} bytes; the limit is {limit}")
        parts: list[bytes] = []
        held = 0
        try:
            while part := await response.content.readany():
                if not unfinished.take(len(part)):
                    raise Overloaded(f"the gateway holds {unfinished.held} bytes of unfinished answers already")
                held += len(part)
                parts.append(part)
                if held > limit:
                    raise BodyTooLarge(f"webhook answered with more than {limit} bytes")
        finally:
            unfinished.give_back(held)
        return b"".join(parts)


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    content = b""
    while len(content) < QUOTED_BYTES and (part := await response.content.readany()):
        content += part
    return content


def _answer(response: aiohttp.ClientResponse, content: bytes) -> Answer:
    found = response.headers
    return Answer(
        status=response.status,
        body=content,
        coding=found.get("Content-Encoding", ""),
        etag=found.get("ETag", ""),
        retry_after=found.get("Retry-After", "").strip(),
    )


@contextmanager
def _as_hook_errors(where: str) -> Iterator[None]:
    """Raise our own errors in the place of aiohttp's, whose texts may hold the URL with its query, or bytes of the webhook's."""
    try:
        yield
    except aiohttp.ClientConnectorDNSError as error:
        raise ConnectFailed(f"the name of {where} does not resolve: {error.os_error.strerror or 'no answer'}") from error
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
        raise TlsFailed(f"no trusted TLS connection to {where}: {error}") from error
    except aiohttp.ClientConnectorError as error:
        if isinstance(error.os_error, AddressRefused):
            raise AddressDenied(f"webhooks may not live at the address of {where}: {error.os_error}") from error
        if current_steps.get().last == steps.TLS_START:
            raise TlsFailed(f"{where} broke off the TLS handshake: {error.os_error}") from error
        raise ConnectFailed(f"no connection to {where}: {error.os_error}") from error
    except ssl.SSLError as error:
        raise TlsFailed(f"{where} ended the TLS connection: {error.reason}") from error
    except aiohttp.ClientResponseError as error:
        raise ConnectionLost(f"{where} did not answer in HTTP: {error.message}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionLost(f"{where} closed the connection before the end of its answer: {error}") from error
