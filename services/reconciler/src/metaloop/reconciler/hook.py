"""Asks hookgateway what a parent desires."""

from dataclasses import dataclass
from typing import Final

import aiohttp
from orjson import Fragment
from yarl import URL

from metaloop.common.api.composite import KIND, parse_composite
from metaloop.common.api.hook import Hook
from metaloop.common.errors import InvalidSpec, Unavailable
from metaloop.common.hooks import call
from metaloop.common.json import JsonObject, dumps
from metaloop.common.telemetry.traces import span
from metaloop.reconciler.core.answer import sync_answer
from metaloop.reconciler.core.model import Answer, ChildGroup, Observed
from metaloop.reconciler.core.request import sync_request
from metaloop.reconciler.errors import HookFailed, HookThrottled
from metaloop.reconciler.memo import LatestVersions
from metaloop.reconciler.ports import Slot

_EXCERPT: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class _Callee:
    """What each call of a controller's sync hook has in common: made once per version of the controller."""

    hook: Hook
    target: str
    controller: Fragment


class HookCaller:
    """Calls the hooks of all controllers, through the gateway."""

    def __init__(self, session: aiohttp.ClientSession, *, gateway_url: str, token: str) -> None:
        self._session = session
        self._url = URL(gateway_url.rstrip("/") + call.PATH)
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._callees = LatestVersions(_sync_callee)

    async def desired(self, observed: Observed, groups: tuple[ChildGroup, ...], *, slot: Slot) -> Answer:
        """What the sync hook answers for a parent and its claimed children; the slot is lent meanwhile."""
        callee = self._callees.of(observed.controller.raw)
        body = sync_request(observed, groups, version=callee.hook.version, controller=callee.controller)
        async with slot.waiting():
            verdict = await self._call(body, target=callee.target, parent_uid=observed.uid)
        match verdict:
            case call.Accepted(body=answer) | call.NotModified(body=answer):
                return sync_answer(answer, is_strict=callee.hook.strict)
            case call.Throttled(after_seconds=after):
                raise HookThrottled(after)
            case call.Rejected(reason=reason, message=message, retryable=retryable):
                raise HookFailed(hook=callee.hook.name, reason=reason, message=message, retryable=retryable)

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


def _sync_callee(raw: JsonObject) -> _Callee:
    controller = parse_composite(raw)
    hook = controller.hooks.sync
    if hook is None or hook.webhook is None:
        raise InvalidSpec("spec.hooks.sync.webhook", "is missing: there is no hook to ask")
    target: JsonObject = {
        "controller": {"kind": KIND, "name": controller.name, "uid": controller.uid},
        "hook": hook.name,
        "webhook": hook.webhook,
        "endpointConfigs": [*controller.endpoint_configs],
    }
    return _Callee(hook=hook, target=call.target_header(target), controller=Fragment(dumps(raw)))


def _gateway_error(status: int, body: bytes) -> InvalidSpec | Unavailable:
    text = body[:_EXCERPT].decode(errors="replace").strip()
    if status == 422:
        return InvalidSpec("spec.hooks", f"the hook gateway can't read it: {text}")
    return Unavailable(f"the hook gateway answered {status}: {text}")
