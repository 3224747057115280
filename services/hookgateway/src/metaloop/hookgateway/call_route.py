"""Serves `POST /v2/call`, and `/v1/call` for calls without a lease: parses, calls, and sends the verdict."""

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache
from hmac import compare_digest
from typing import Final

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from metaloop.common.hooks.call import (
    LEASED_PATH,
    PARENT_HEADER,
    PATH,
    REVISION_HEADER,
    TARGET_HEADER,
    VERDICT_HEADER,
    Verdict,
    verdict_to_wire,
)
from metaloop.common.server import App
from metaloop.common.telemetry import fields, get_logger
from metaloop.hookgateway.call import Call, Gateway
from metaloop.hookgateway.call_watch import CallWatch
from metaloop.hookgateway.core.target import Target, parse_target
from metaloop.hookgateway.core.verdict import verdict_of_error
from metaloop.hookgateway.errors import CallerLeft, CallRefused, Draining, HookError, WrongToken
from metaloop.hookgateway.incoming import IncomingCall, LeasedBody

CACHED_TARGETS: Final = 1024
"""How many parsed target headers are kept: one for each hook of each controller, and some of their former specs."""

_TARGET_KEY = TARGET_HEADER.lower().encode()
_PARENT_KEY = PARENT_HEADER.lower().encode()
_REVISION_KEY = REVISION_HEADER.lower().encode()
_VERDICT_KEY = VERDICT_HEADER.lower().encode()
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

log = get_logger()


class CallRoute:
    """`POST /v2/call` as a bare ASGI application: bytes in, bytes out.

    A call is cancelled when its caller disconnects, or does not renew its lease.
    """

    def __init__(self, gateway: Gateway, *, tokens: Sequence[str], max_request_bytes: int, stopping: asyncio.Event) -> None:
        self._gateway = gateway
        self._stopping = stopping
        """Set when this process is about to end. From then on, new calls are refused."""

        self._in_flight: set[CallWatch] = set()
        self._idle = asyncio.Event()
        """Set while no call is in flight."""

        self._idle.set()
        self._admitted = [f"Bearer {token}".encode() for token in tokens]
        """The values of the header of which a caller must send one; empty: everybody may call."""
        self._max_request_bytes = max_request_bytes

    def mount(self, app: App) -> None:
        """Add the routes to this application."""
        for path in (LEASED_PATH, PATH):
            app.router.routes.append(Route(path, self, methods=["POST"]))
            app.serve_directly("POST", path, self)

    async def finished(self) -> None:
        """Wait until no call is in flight. If this is cancelled, the calls that still are will be cancelled too."""
        try:
            await self._idle.wait()
        except asyncio.CancelledError:
            for watch in tuple(self._in_flight):
                watch.end(Draining("ended: this gateway goes away"))
            raise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        try:
            incoming = IncomingCall(receive, limit=self._max_request_bytes)
            verdict = await self._verdict(dict(scope["headers"]), incoming, is_leased=scope["path"] == LEASED_PATH)
        except CallRefused as refusal:
            await _send(send, refusal.status, [(b"content-type", b"text/plain"), (b"connection", b"close")], str(refusal).encode())
        except CallerLeft:
            pass
        else:
            name, body = verdict_to_wire(verdict)
            await _send(send, 200, [(_VERDICT_KEY, name.encode()), (b"content-type", b"application/json")], body)

    def _is_admitted(self, authorization: bytes) -> bool:
        """Whether a caller knows one of the tokens."""
        return any(compare_digest(authorization, admitted) for admitted in self._admitted)

    async def _verdict(self, headers: dict[bytes, bytes], incoming: IncomingCall, *, is_leased: bool) -> Verdict:
        if self._stopping.is_set():
            raise Draining("draining: call another gateway")
        if self._admitted and not self._is_admitted(headers.get(b"authorization", b"")):
            raise WrongToken("wrong token")
        received = await incoming.leased_body() if is_leased else LeasedBody(await incoming.body(), None)
        try:
            target = _target(headers.get(_TARGET_KEY, b""))
        except HookError as error:
            return verdict_of_error(error)
        call = Call(
            target=target,
            parent_uid=headers.get(_PARENT_KEY, b"").decode("latin-1"),
            revision=headers.get(_REVISION_KEY, b"").decode("latin-1"),
            traceparent=_traceparent(headers),
            body=received.body,
        )
        return await self._verdict_while_held(incoming, call, lease_seconds=received.seconds)

    async def _verdict_while_held(self, incoming: IncomingCall, call: Call, *, lease_seconds: float | None) -> Verdict:
        """The verdict. Raises CallerLeft and CallRefused where the call to the webhook had to be ended.

        When a reconciler dies or stands still, its lease on the parent ends, and the next reconciler may call the same
        hook at once. Hooks are promised that there are never two calls for one parent at a time. So the first call must
        end with its caller's lease and not with its timeout.
        """
        with CallWatch(incoming, lease_seconds=lease_seconds) as watch:
            self._in_flight.add(watch)
            self._idle.clear()
            try:
                return await self._gateway.verdict_on(call)
            finally:
                self._in_flight.discard(watch)
                if not self._in_flight:
                    self._idle.set()


@lru_cache(CACHED_TARGETS)
def _target(header: bytes) -> Target:
    target = parse_target(header)
    if target.timeout_is_ignored:
        log.warning("hook.timeout_ignored", **{fields.CONTROLLER: str(target.controller), fields.SECONDS: target.timeout_seconds})
    return target


def _traceparent(headers: dict[bytes, bytes]) -> str:
    """The caller's trace context, or nothing if it is malformed: a webhook must get a valid one or none."""
    value = headers.get(b"traceparent", b"")
    return value.decode() if _TRACEPARENT.fullmatch(value) else ""


async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
