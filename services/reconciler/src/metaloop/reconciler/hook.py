"""Asks hookgateway what a parent desires."""

from dataclasses import dataclass
from typing import Final

import aiohttp
from orjson import Fragment
from yarl import URL

from metaloop.common.api.hook import Hook, HookName
from metaloop.common.errors import InvalidSpec, Unavailable
from metaloop.common.hooks import call
from metaloop.common.interest import Interest
from metaloop.common.json import JsonObject, dumps
from metaloop.common.telemetry.traces import span
from metaloop.reconciler.core.answer import sync_answer
from metaloop.reconciler.core.finalize import hook_to_ask
from metaloop.reconciler.core.flavours import flavour_of, parse_controller
from metaloop.reconciler.core.model import Answer, Controller, Observed, Shown
from metaloop.reconciler.core.related import interests_in
from metaloop.reconciler.core.request import Asked, customize_request, sync_request
from metaloop.reconciler.errors import HookFailed, HookThrottled
from metaloop.reconciler.memo import LatestVersions
from metaloop.reconciler.ports import Slot

_EXCERPT: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class _Callee:
    """What each call of one hook has in common: made once per version of its controller."""

    hook: Hook
    target: str
    asked: Asked


class HookCaller:
    """Calls the hooks of all controllers, through the gateway."""

    def __init__(self, session: aiohttp.ClientSession, *, gateway_url: str, token: str) -> None:
        self._session = session
        self._url = URL(gateway_url.rstrip("/") + call.PATH)
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._callees = LatestVersions(_callees)

    async def desired(self, observed: Observed, shown: Shown, *, slot: Slot) -> Answer:
        """What the sync hook, or the finalize hook at its time, answers for a parent; the slot is lent meanwhile."""
        callee = self._callees.of(observed.controller.raw)[hook_to_ask(observed).name]
        body = await self._answered(callee, sync_request(observed, shown, asked=callee.asked), observed, slot=slot)
        return sync_answer(body, is_strict=callee.hook.strict, wording=callee.asked.wording)

    async def interests(self, observed: Observed, *, slot: Slot) -> tuple[Interest, ...]:
        """What the customize hook asks to follow; the slot is lent meanwhile."""
        callee = self._callees.of(observed.controller.raw)["customize"]
        body = await self._answered(callee, customize_request(observed, controller=callee.asked.controller), observed, slot=slot)
        return interests_in(body, observed, version=callee.hook.version, is_strict=callee.hook.strict)

    async def _answered(self, callee: _Callee, body: bytes, observed: Observed, *, slot: Slot) -> bytes:
        """The body of a hook's response."""
        async with slot.waiting():
            verdict = await self._call(body, target=callee.target, parent_uid=observed.uid)
        match verdict:
            case call.Accepted(body=answer) | call.NotModified(body=answer):
                return answer
            case call.Throttled() | call.Rejected():
                raise _no_answer(callee.hook, verdict)

    async def _call(self, body: bytes, *, target: str, parent_uid: str) -> call.Verdict:
        headers = {**self._headers, call.TARGET_HEADER: target, call.PARENT_HEADER: parent_uid, call.REVISION_HEADER: ""}
        try:
            with span("call hook") as spanned:
                if spanned.traceparent:
                    headers["traceparent"] = spanned.traceparent
                async with self._session.post(self._url, data=body, headers=headers) as response:
                    answer = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unavailable(f"the hook gateway can't be reached: {error or type(error).__name__}") from error
        if response.status != 200:
            raise _gateway_error(response.status, answer)
        return call.verdict_from_wire(response.headers.get(call.VERDICT_HEADER, ""), answer)


def _callees(raw: JsonObject) -> dict[HookName, _Callee]:
    """The hooks of a controller that have a webhook."""
    controller = parse_controller(raw)
    hooks = (controller.hooks.sync, controller.hooks.finalize, controller.hooks.customize)
    shown = Fragment(dumps(raw))
    return {hook.name: _callee(hook, controller, shown) for hook in hooks if hook is not None and hook.webhook is not None}


def _callee(hook: Hook, controller: Controller, shown: Fragment) -> _Callee:
    target: JsonObject = {
        "controller": {"kind": controller.id.kind, "name": controller.name, "uid": controller.uid},
        "hook": hook.name,
        "webhook": hook.webhook,
        "endpointConfigs": [*controller.endpoint_configs],
    }
    wording = flavour_of(controller.id).wording
    asked = Asked(controller=shown, version=hook.version, wording=wording, finalizing=hook.name == "finalize")
    return _Callee(hook=hook, target=call.target_header(target), asked=asked)


def _no_answer(hook: Hook, verdict: call.Throttled | call.Rejected) -> HookThrottled | HookFailed:
    """The end of a sync whose hook didn't answer, in the gateway's words."""
    match verdict:
        case call.Throttled(after_seconds=after, reason=reason, message=message):
            return HookThrottled(after, reason=reason, message=f"{hook.name} hook: {message}")
        case call.Rejected(reason=reason, message=message, retryable=retryable, again_within_seconds=within):
            return HookFailed(hook=hook.name, reason=reason, message=message, retryable=retryable, again_within_seconds=within)


def _gateway_error(status: int, body: bytes) -> InvalidSpec | Unavailable:
    text = body[:_EXCERPT].decode(errors="replace").strip()
    if status == 422:
        return InvalidSpec("spec.hooks", f"the hook gateway can't read it: {text}")
    return Unavailable(f"the hook gateway answered {status}: {text}")
