"""Holds the connections to one endpoint with one set of credentials, and closes them when they are no longer needed."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

import aiohttp

from metaloop.hookgateway.core.credentials import Credentials
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.core.verdict import Answer
from metaloop.hookgateway.dial import Dialer
from metaloop.hookgateway.exchange import Bounds, Request, answer_to
from metaloop.hookgateway.tls import context_for

NO_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)
"""None here: one timeout around the call bounds all of it."""


class Connections(Protocol):
    """The connections to one endpoint with one set of credentials."""

    credentials: Credentials

    async def answer_to(self, request: Request, *, bounds: Bounds) -> Answer:
        """The answer to this request, unchecked. Raises the HookError of what failed."""
        ...

    async def retire(self) -> None:
        """Close idle connections now, and the others as their calls end."""
        ...


OpenPool: TypeAlias = Callable[[Endpoint, Credentials], Connections]
"""Opens connections to an endpoint."""


class Pool:
    """`Connections` over HTTP, which are kept alive.

    A retired pool takes no more calls and closes when the calls in flight are over.
    """

    def __init__(self, dialer: Dialer, credentials: Credentials, *, over_tls: bool, proxy_from_environment: bool) -> None:
        self.credentials = credentials
        self._tls = context_for(credentials) if over_tls or credentials.concern_tls else None
        self._session = aiohttp.ClientSession(
            connector=dialer,
            cookie_jar=aiohttp.DummyCookieJar(),  # no cookie of a webhook may be sent with the next parent's call
            timeout=NO_TIMEOUT,
            auto_decompress=False,
            trust_env=proxy_from_environment,
        )
        self._calls = 0
        self._retired = False

    async def answer_to(self, request: Request, *, bounds: Bounds) -> Answer:
        """The answer to this request, unchecked. The session stays open at least until it is there."""
        self._calls += 1
        try:
            return await answer_to(request, self._session, tls=self._tls, bounds=bounds)
        finally:
            self._calls -= 1
            await self._close_if_idle()

    async def retire(self) -> None:
        """Close idle connections now, and the others as their calls end."""
        self._retired = True
        await self._close_if_idle()

    async def _close_if_idle(self) -> None:
        if self._retired and not self._calls:
            await self._session.close()
