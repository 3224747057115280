"""The HTTP surface: `POST /v1/call`; probes and metrics are every service's own."""

import asyncio
import re
from functools import lru_cache
from hmac import compare_digest
from typing import Final

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from metaloop.common.hooks.call import PARENT_HEADER, PATH, REVISION_HEADER, TARGET_HEADER, VERDICT_HEADER, Verdict, verdict_to_wire
from metaloop.common.telemetry import fields, get_logger
from metaloop.hookgateway.call import Call, Gateway
from metaloop.hookgateway.core.target import Target, parse_target
from metaloop.hookgateway.core.verdict import verdict_of
from metaloop.hookgateway.errors import CallerLeft, CallRefused, Draining, HookError, RequestTooLarge, WrongToken

REMEMBERED_TARGETS: Final = 1024
"""How many parsed target headers are kept: one for each hook of each controller, and what is left of their former specs."""

_TARGET_KEY = TARGET_HEADER.lower().encode()
_PARENT_KEY = PARENT_HEADER.lower().encode()
_REVISION_KEY = REVISION_HEADER.lower().encode()
_VERDICT_KEY = VERDICT_HEADER.lower().encode()
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

log = get_logger()


class CallRoute:
    """`POST /v1/call`, as a bare ASGI application: bytes in, bytes out, and the caller watched for while the webhook thinks."""

    def __init__(self, gateway: Gateway, *, token: str, max_request_bytes: int, stopping: asyncio.Event) -> None:
        self._gateway = gateway
        self._stopping = stopping
        """Set when this process is about to end: from then on, new calls are refused."""

        self._in_flight: set[asyncio.Task[Verdict]] = set()
        self._idle = asyncio.Event()
        """Set while no call is in flight."""

        self._idle.set()
        self._token = f"Bearer {token}".encode() if token else b""
        self._max_request_bytes = max_request_bytes

    def mount(self, app: FastAPI) -> None:
        """Serve calls on this application."""
        app.router.routes.insert(0, Route(PATH, self, methods=["POST"]))

    async def finished(self) -> None:
        """Wait until no call is in flight; those that still are when this is cancelled are ended."""
        try:
            await self._idle.wait()
        except asyncio.CancelledError:
            for calling in self._in_flight:
                calling.cancel()
            raise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        try:
            verdict = await self._verdict(dict(scope["headers"]), receive)
        except CallRefused as refusal:
            await _send(send, refusal.status, [(b"content-type", b"text/plain"), (b"connection", b"close")], str(refusal).encode())
        except CallerLeft:
            pass
        else:
            name, body = verdict_to_wire(verdict)
            await _send(send, 200, [(_VERDICT_KEY, name.encode()), (b"content-type", b"application/json")], body)

    async def _verdict(self, headers: dict[bytes, bytes], receive: Receive) -> Verdict:
        if self._stopping.is_set():
            raise Draining("draining: call another gateway")
        if self._token and not compare_digest(headers.get(b"authorization", b""), self._token):
            raise WrongToken("wrong token")
        body = await _body(receive, limit=self._max_request_bytes)
        try:
            target = _target(headers.get(_TARGET_KEY, b""))
        except HookError as error:
            return verdict_of(error)
        call = Call(
            target=target,
            parent_uid=headers.get(_PARENT_KEY, b"").decode("latin-1"),
            revision=headers.get(_REVISION_KEY, b"").decode("latin-1"),
            traceparent=_traceparent(headers),
            body=body,
        )
        return await self._verdict_unless_caller_leaves(receive, call)

    async def _verdict_unless_caller_leaves(self, receive: Receive, call: Call) -> Verdict:
        """The verdict. Raises CallerLeft when its caller goes away: then the call has been cancelled, down to the webhook's connection.

        A reconciler that dies gives up its lease on the parent, and the next one may call the same hook at once. Two calls for one parent
        at a time would break what hooks are promised, so the first must end with its caller and not with its timeout.
        """
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(self._gateway.verdict_on(call))
            watching = group.create_task(_cancel_when_left(receive, calling))
            calling.add_done_callback(lambda _: watching.cancel())
            self._begin(calling)
        if calling.cancelled():
            raise Draining("ended: this gateway goes away") if self._stopping.is_set() else CallerLeft
        return calling.result()

    def _begin(self, calling: asyncio.Task[Verdict]) -> None:
        self._in_flight.add(calling)
        self._idle.clear()
        calling.add_done_callback(self._end)

    def _end(self, calling: asyncio.Task[Verdict]) -> None:
        self._in_flight.discard(calling)
        if not self._in_flight:
            self._idle.set()


@lru_cache(REMEMBERED_TARGETS)
def _target(header: bytes) -> Target:
    target = parse_target(header)
    if target.timeout_is_ignored:
        log.warning("hook.timeout_ignored", **{fields.CONTROLLER: str(target.controller), fields.SECONDS: target.timeout_seconds})
    return target


def _traceparent(headers: dict[bytes, bytes]) -> str:
    """The caller's trace context, if it is one: what a webhook is sent must be well-formed, whoever called."""
    value = headers.get(b"traceparent", b"")
    return value.decode() if _TRACEPARENT.fullmatch(value) else ""


async def _body(receive: Receive, *, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise CallerLeft
        parts.append(message["body"])
        size += len(parts[-1])
        if size > limit:
            raise RequestTooLarge(f"the request is longer than {limit} bytes")
        if not message["more_body"]:
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def _cancel_when_left(receive: Receive, calling: asyncio.Task[Verdict]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    calling.cancel()


async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
