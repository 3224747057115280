"""Calls hooks through the hook gateway."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import isinf
from types import TracebackType
from typing import Final

from metaloop.common.api.controller import Controller
from metaloop.common.api.hook import DEFAULT_TIMEOUT_SECONDS, Hook, HookName, wanted_timeout
from metaloop.common.errors import InvalidSpec, Unavailable
from metaloop.common.hooks import call as wire
from metaloop.common.http.body import Body, OpenBody
from metaloop.common.http.peer import Asked, header_lines
from metaloop.common.json import JsonObject
from metaloop.common.telemetry.traces import span
from metaloop.common.waiting import gathered
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.errors import GatewayTimedOut, HookFailed, HookThrottled
from metaloop.reconciler.ports import LeaseGuard, Slot
from metaloop.reconciler.version_cache import VersionCache

_EXCERPT_LENGTH: Final = 300


class HookCaller:
    """Calls the hooks of all controllers through the gateway."""

    def __init__(self, gateway: Asked, *, token: str, slack_seconds: float = wire.SLACK_SECONDS) -> None:
        self._gateway = gateway
        self._slack_seconds = slack_seconds
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._targets = VersionCache(_no_targets)
        """Whom to call, by hook. They are made once for each version of a controller."""

    async def call(self, observed: Observed, hook: Hook, bodies: Mapping[str, Body], *, slot: Slot, lease: LeaseGuard) -> list[bytes]:
        """The bodies of the answers to `bodies`, which are named by revision, in order. Meanwhile the slot is lent."""
        target = self._target(observed.controller, hook)
        headers = {**self._headers, wire.TARGET_HEADER: target.header, wire.PARENT_HEADER: observed.uid}
        calls = [self._call(body, {**headers, wire.REVISION_HEADER: revision}, lease) for revision, body in bodies.items()]
        async with slot.waiting():
            verdicts = await self._in_time(gathered(calls), hook, target.timeout_seconds + self._slack_seconds)
        return [_answer_in(verdict, hook) for verdict in verdicts]

    def _target(self, controller: Controller, hook: Hook) -> "_Target":
        targets = self._targets.of(controller.raw)
        target = targets.get(hook.name)
        if target is None:
            target = targets[hook.name] = _target_of(controller, hook)
        return target

    async def _in_time(self, verdicts: Awaitable[list[wire.Verdict]], hook: Hook, seconds: float) -> list[wire.Verdict]:
        """The verdicts. Raises GatewayTimedOut: a gateway that hangs must not hold the parent for ever."""
        try:
            async with asyncio.timeout(seconds):
                return await verdicts
        except TimeoutError as error:
            raise GatewayTimedOut(f"the hook gateway gave no verdict on the {hook.name} hook within {seconds:g} s") from error

    async def _call(self, body: Body, headers: dict[str, str], lease: LeaseGuard) -> wire.Verdict:
        try:
            with span("call hook") as spanned:
                if spanned.traceparent:
                    headers["traceparent"] = spanned.traceparent
                path, sent = (wire.PATH, body) if isinf(lease.lent_seconds) else (wire.LEASED_PATH, _leased(body, lease))
                answer = await self._gateway.ask("POST", path, header_lines(headers), sent, permit=lease.check)
        except OSError as error:
            raise Unavailable(f"the hook gateway can't be reached: {error}") from error
        if answer.status != 200:
            raise _gateway_error(answer.status, answer.body)
        return wire.verdict_from_wire(answer.header(wire.VERDICT_HEADER), answer.body)


def _leased(body: Body, lease: LeaseGuard) -> OpenBody:
    """A body with the time for which its call may go on: the gateway ends the call of a caller that stands still."""
    return OpenBody(wire.frames_of(body), partial(_Renewals, lease))


class _Renewals:
    """A block in which a gateway is told how long the lease lasts: at its beginning, and whenever it is extended."""

    __slots__ = ("_extensions", "_lease", "_send")

    def __init__(self, lease: LeaseGuard, send: Callable[[bytes], None]) -> None:
        self._lease = lease
        self._send = send
        self._extensions = lease.on_extension(self._tell)

    def __enter__(self) -> None:
        self._tell()
        self._extensions.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._extensions.__exit__(kind, error, trace)

    def _tell(self) -> None:
        self._send(wire.renewed_to_wire(self._lease.lent_seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """Whom to call for a hook."""

    header: str
    """Names the webhook to the gateway."""
    timeout_seconds: float
    """The webhook's timeout, as the gateway keeps it."""


def _timeout_of(hook: Hook) -> float:
    """The webhook's timeout as the gateway keeps it. An invalid one is the gateway's to refuse."""
    try:
        wanted = wanted_timeout(hook.webhook or {})
    except InvalidSpec:
        wanted = 0.0
    return wanted if wanted > 0 else DEFAULT_TIMEOUT_SECONDS


def _no_targets(_: JsonObject) -> dict[HookName, _Target]:
    return {}


def _target_of(controller: Controller, hook: Hook) -> _Target:
    target: JsonObject = {
        "controller": {"kind": controller.kind, "name": controller.name, "uid": controller.uid},
        "hook": hook.name,
        "webhook": hook.webhook,
        "endpointConfigs": [*controller.endpoint_configs],
    }
    return _Target(header=wire.target_header(target), timeout_seconds=_timeout_of(hook))


def _answer_in(verdict: wire.Verdict, hook: Hook) -> bytes:
    """The answer that a verdict carries. If there is none, raises HookThrottled or HookFailed."""
    match verdict:
        case wire.Accepted(body=answer) | wire.NotModified(body=answer):
            return answer
        case wire.Throttled(after_seconds=after, fault=fault, message=message):
            raise HookThrottled(after, fault=fault, message=f"{hook.name} hook: {message}")
        case wire.Rejected(fault=fault, message=message):
            raise HookFailed(hook=hook.name, fault=fault, message=message)


def _gateway_error(status: int, body: bytes) -> InvalidSpec | Unavailable:
    text = body[:_EXCERPT_LENGTH].decode(errors="replace").strip()
    if status == 422:
        return InvalidSpec("spec.hooks", f"the hook gateway can't read it: {text}")
    return Unavailable(f"the hook gateway answered {status}: {text}")
