"""Asks hookgateway what a parent desires."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orjson import Fragment

from metaloop.common.api.controller import Controller
from metaloop.common.api.hook import Hook, HookName
from metaloop.common.api.kinds import parse_controller
from metaloop.common.errors import InvalidSpec, Unavailable
from metaloop.common.hooks import call
from metaloop.common.http.peer import Peer, header_lines
from metaloop.common.json import JsonObject, dumps
from metaloop.common.related_query import RelatedQuery
from metaloop.common.telemetry.traces import span
from metaloop.reconciler.core.hooks.answer import sync_answer
from metaloop.reconciler.core.hooks.customize import interests_in
from metaloop.reconciler.core.hooks.request import Asked, customize_request, sync_request
from metaloop.reconciler.core.kinds.registry import variant_of
from metaloop.reconciler.core.model import Answer, Observed, Shown
from metaloop.reconciler.core.parent.finalizer import hook_to_ask
from metaloop.reconciler.core.rollout.revisions import Revision
from metaloop.reconciler.errors import HookFailed, HookThrottled
from metaloop.reconciler.ports import Slot
from metaloop.reconciler.version_cache import VersionCache

_EXCERPT: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class _Callee:
    """What each call of one hook has in common: made once per version of its controller."""

    hook: Hook
    headers: Mapping[str, str]
    """Whom to call."""
    asked: Asked


class HookCaller:
    """Calls the hooks of all controllers, through the gateway."""

    def __init__(self, gateway: Peer, *, token: str) -> None:
        self._gateway = gateway
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._callees = VersionCache(_callees)

    async def desired(self, observed: Observed, shown: Shown, live: Sequence[Revision], *, slot: Slot) -> list[Answer]:
        """What the sync hook, or the finalize hook at its time, answers for each of a parent's revisions, asked at once; the slot is lent meanwhile."""
        callee = self._callees.of(observed.controller.raw)[hook_to_ask(observed).name]
        bodies = {each.name: sync_request(observed.with_parent(each.parent), shown, asked=callee.asked) for each in live}
        answers = await self._answered(callee, bodies, observed, slot=slot)
        return [sync_answer(body, is_strict=callee.hook.strict, keys=callee.asked.keys) for body in answers]

    async def interests(self, observed: Observed, *, slot: Slot) -> tuple[RelatedQuery, ...]:
        """What the customize hook asks to follow; the slot is lent meanwhile."""
        callee = self._callees.of(observed.controller.raw)["customize"]
        request = customize_request(observed, controller=callee.asked.controller)
        [body] = await self._answered(callee, {"": request}, observed, slot=slot)
        return interests_in(body, observed, version=callee.hook.version, is_strict=callee.hook.strict)

    async def _answered(self, callee: _Callee, bodies: Mapping[str, bytes], observed: Observed, *, slot: Slot) -> list[bytes]:
        """The bodies of a hook's responses to these, each of which stands under the name of its revision."""
        headers = {**self._headers, **callee.headers, call.PARENT_HEADER: observed.uid}
        calls = [self._call(body, {**headers, call.REVISION_HEADER: revision}) for revision, body in bodies.items()]
        async with slot.waiting():
            verdicts = await _at_once(calls)
        return [_answer_in(verdict, callee.hook) for verdict in verdicts]

    async def _call(self, body: bytes, headers: dict[str, str]) -> call.Verdict:
        try:
            with span("call hook") as spanned:
                if spanned.traceparent:
                    headers["traceparent"] = spanned.traceparent
                answer = await self._gateway.ask("POST", call.PATH, header_lines(headers), body)
        except OSError as error:
            raise Unavailable(f"the hook gateway can't be reached: {error}") from error
        if answer.status != 200:
            raise _gateway_error(answer.status, answer.body)
        return call.verdict_from_wire(answer.header(call.VERDICT_HEADER), answer.body)


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
    keys = variant_of(controller.id).keys
    asked = Asked(controller=shown, version=hook.version, keys=keys, finalizing=hook.name == "finalize")
    return _Callee(hook=hook, headers={call.TARGET_HEADER: call.target_header(target)}, asked=asked)


async def _at_once(calls: Sequence[Coroutine[None, None, call.Verdict]]) -> list[call.Verdict]:
    """The verdicts of all calls, in their order; the first that raises cancels the others."""
    if len(calls) == 1:
        return [await calls[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in calls]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]


def _answer_in(verdict: call.Verdict, hook: Hook) -> bytes:
    """The answer that a verdict carries. Raises what ends a sync whose hook didn't answer, in the gateway's words."""
    match verdict:
        case call.Accepted(body=answer) | call.NotModified(body=answer):
            return answer
        case call.Throttled(after_seconds=after, fault=fault, message=message):
            raise HookThrottled(after, fault=fault, message=f"{hook.name} hook: {message}")
        case call.Rejected(fault=fault, message=message):
            raise HookFailed(hook=hook.name, fault=fault, message=message)


def _gateway_error(status: int, body: bytes) -> InvalidSpec | Unavailable:
    text = body[:_EXCERPT].decode(errors="replace").strip()
    if status == 422:
        return InvalidSpec("spec.hooks", f"the hook gateway can't read it: {text}")
    return Unavailable(f"the hook gateway answered {status}: {text}")
