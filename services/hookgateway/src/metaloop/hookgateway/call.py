"""One hook call from the target to the verdict, and the page to read first: admit, identify, ask, judge, remember."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import Final

from metaloop.common.hooks.call import Accepted, Rejected, Throttled, Verdict
from metaloop.common.job import ControllerId
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.telemetry.traces import span
from metaloop.hookgateway.core.breaker import Bulkhead
from metaloop.hookgateway.core.credentials import NO_CREDENTIALS, Credentials
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.core.etag import EtagCache, Question, Remembered
from metaloop.hookgateway.core.target import Target
from metaloop.hookgateway.core.verdict import Answer, judge, verdict_of
from metaloop.hookgateway.credentials import CredentialStore
from metaloop.hookgateway.errors import ControllerBusy, HookError
from metaloop.hookgateway.metrics import Metrics
from metaloop.hookgateway.pacing import Pacer
from metaloop.hookgateway.steps import Steps, current_steps
from metaloop.hookgateway.webhook import Transport, Webhook

INFLATED_ASIDE_BYTES: Final = 4096
"""A compressed body larger than this is judged in a thread: it may grow a thousandfold, and other calls shall not wait for that."""

STARTS_PER_ITERATION: Final = 8
"""How many calls of one controller start in one iteration of the event loop."""

log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call as the reconciler makes it."""

    target: Target
    parent_uid: str
    revision: str
    traceparent: str
    body: bytes

    @property
    def question(self) -> Question | None:
        """What its answer may be remembered for, if the controller wants that."""
        if not self.target.etag.enabled or not self.parent_uid:
            return None
        return self.target.question(parent_uid=self.parent_uid, revision=self.revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one controller, and one answer, may take."""

    calls_per_controller: int
    put_off_seconds: float
    max_response_bytes: int


@dataclass(frozen=True, slots=True)
class ControllerLimits:
    """What bounds the calls of one controller."""

    bulkhead: Bulkhead
    pacer: Pacer


class Gateway:
    """Makes calls, and keeps what outlives them: webhooks with their circuits, remembered answers, each controller's limits."""

    def __init__(self, transport: Transport, *, limits: Limits, cache: EtagCache, credentials: CredentialStore, metrics: Metrics) -> None:
        self._transport = transport
        self._limits = limits
        self._cache = cache
        self._credentials = credentials
        self._metrics = metrics
        self._webhooks: dict[Endpoint, Webhook] = {}
        self._controllers: dict[ControllerId, ControllerLimits] = {}
        """Those of controllers with calls in flight, and no others."""

    async def verdict_on(self, call: Call) -> Verdict:
        """What the reconciler is told. Cancelling this ends the call to the webhook and closes its connection."""
        target = call.target
        with span(f"hook {target.hook}", traceparent=call.traceparent, attributes=_attributes(target)) as spanned:
            steps, credentials = Steps(spanned), NO_CREDENTIALS
            try:
                async with self._admitted(target.controller):
                    credentials = await self._credentials.credentials_of(target.endpoint)
                    verdict = await self._asked(call, credentials, steps)
            except HookError as error:
                verdict = verdict_of(error, secrets=credentials.secrets)
            self._note(verdict, target, steps)
        return verdict

    async def close(self) -> None:
        """Close every connection, now or as its call ends."""
        for webhook in self._webhooks.values():
            await webhook.close()

    async def collect(self, *, unused_since: float) -> None:
        """Free what is past its time: remembered answers, and what belongs to endpoints that were last called before that moment."""
        self._cache.collect(now=monotonic())
        self._credentials.forget_unused_since(unused_since)
        self._metrics.forget_unused_since(unused_since)
        for webhook in [webhook for webhook in self._webhooks.values() if webhook.used_at < unused_since]:
            del self._webhooks[webhook.endpoint]
            await webhook.forget()

    @asynccontextmanager
    async def _admitted(self, controller: ControllerId) -> AsyncIterator[None]:
        limits = self._controllers.get(controller)
        if limits is None:
            bulkhead, pacer = Bulkhead(self._limits.calls_per_controller), Pacer(STARTS_PER_ITERATION)
            limits = self._controllers[controller] = ControllerLimits(bulkhead, pacer)
        bulkhead = limits.bulkhead
        if not bulkhead.enter():
            raise ControllerBusy(f"{controller} has {bulkhead.in_flight} calls in flight", after_seconds=self._limits.put_off_seconds)
        try:
            await limits.pacer.wait()
            yield
        finally:
            bulkhead.leave()
            if not bulkhead.in_flight:
                del self._controllers[controller]

    async def _asked(self, call: Call, credentials: Credentials, steps: Steps) -> Verdict:
        question = call.question
        sent = None if question is None else self._cache.answer_to(question, now=monotonic())
        answer = await self._answer(call, _headers(credentials, sent, steps.span.traceparent), credentials, steps)
        verdict = await self._judged(answer, sent, credentials)
        if question is not None and isinstance(verdict, Accepted):
            self._cache.remember(question, etag=answer.etag, body=verdict.body, policy=call.target.etag, now=monotonic())
        return verdict

    async def _answer(self, call: Call, headers: dict[str, str], credentials: Credentials, steps: Steps) -> Answer:
        target = call.target
        current_steps.set(steps)
        series = self._metrics.series_of(target)
        with series.in_flight():
            answer = await self._webhook_at(target.endpoint).send(
                call.body, headers=headers, credentials=credentials, timeout_seconds=target.timeout_seconds
            )
        series.answered(answer.status, steps)
        return answer

    async def _judged(self, answer: Answer, sent: Remembered | None, credentials: Credentials) -> Verdict:
        limit = self._limits.max_response_bytes
        judging = partial(judge, answer, sent=sent, now=datetime.now(UTC), limit=limit, secrets=credentials.secrets)
        if answer.coding and len(answer.body) > INFLATED_ASIDE_BYTES:
            return await asyncio.to_thread(judging)
        return judging()

    def _webhook_at(self, endpoint: Endpoint) -> Webhook:
        webhook = self._webhooks.get(endpoint)
        if webhook is None:
            webhook = self._webhooks[endpoint] = Webhook(endpoint, self._transport)
        return webhook

    def _note(self, verdict: Verdict, target: Target, steps: Steps) -> None:
        """Count the verdict, and make known why there is no answer."""
        name, reason = type(verdict).__name__, verdict.fault.reason if isinstance(verdict, Rejected | Throttled) else ""
        self._metrics.series_of(target).told(name, reason)
        steps.span.set(fields.VERDICT, name)
        if reason:
            steps.span.set(fields.REASON, reason)
        if isinstance(verdict, Rejected):
            steps.span.fail(verdict.message)
            told = {fields.REASON: reason, fields.ERROR: verdict.message, fields.SECONDS: round(steps.elapsed(), 3)}
            log.warning("hook.rejected", **_attributes(target), **told)


def _attributes(target: Target) -> dict[str, str]:
    return {fields.CONTROLLER: str(target.controller), fields.HOOK: target.hook, fields.ENDPOINT: target.endpoint.label}


def _headers(credentials: Credentials, sent: Remembered | None, traceparent: str) -> dict[str, str]:
    """What only this request says in its headers."""
    headers: dict[str, str] = {}
    if credentials.authorization is not None:
        headers["Authorization"] = credentials.authorization
    if sent is not None:
        headers["If-None-Match"] = sent.etag
    if traceparent:
        headers["traceparent"] = traceparent
    return headers
