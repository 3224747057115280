"""One hook call from the target to the verdict, and the page to read first: admit, ask, judge, remember."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import Final

import structlog

from metaloop.common.hooks.call import Accepted, Verdict
from metaloop.common.job import ControllerId
from metaloop.hookgateway.core.breaker import Bulkhead
from metaloop.hookgateway.core.connection import NO_CREDENTIALS, Credentials
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.core.etag import EtagCache, EtagPolicy, Question, Remembered
from metaloop.hookgateway.core.target import Target
from metaloop.hookgateway.core.verdict import Answer, judge, verdict_of
from metaloop.hookgateway.errors import ControllerBusy, HookError
from metaloop.hookgateway.metrics import Metrics
from metaloop.hookgateway.steps import Steps, current_steps
from metaloop.hookgateway.webhook import Transport, Webhook

INFLATED_ASIDE_BYTES: Final = 4096
"""A compressed body larger than this is judged in a thread: it may grow a thousandfold, and other calls shall not wait for that."""

log = structlog.get_logger()


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
        if self.target.etag is None or not self.parent_uid:
            return None
        return self.target.question(parent_uid=self.parent_uid, revision=self.revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one controller, and one answer, may take."""

    calls_per_controller: int
    put_off_seconds: float
    max_response_bytes: int


class Gateway:
    """Makes calls, and keeps what outlives them: webhooks with their circuits, remembered answers, each controller's places."""

    def __init__(self, transport: Transport, *, limits: Limits, cache: EtagCache, metrics: Metrics) -> None:
        self._transport = transport
        self._limits = limits
        self._cache = cache
        self._metrics = metrics
        self._webhooks: dict[Endpoint, Webhook] = {}
        self._bulkheads: dict[ControllerId, Bulkhead] = {}
        """Those of controllers with calls in flight, and no others."""

    async def verdict_on(self, call: Call) -> Verdict:
        """What the reconciler is told. Cancelling this ends the call to the webhook and closes its connection."""
        credentials = NO_CREDENTIALS
        try:
            with self._place_for(call.target.controller):
                return await self._asked(call, credentials)
        except HookError as error:
            return verdict_of(error, secrets=credentials.secrets)

    async def close(self) -> None:
        """Close every connection, now or as its call ends."""
        for webhook in self._webhooks.values():
            await webhook.close()

    @contextmanager
    def _place_for(self, controller: ControllerId) -> Iterator[None]:
        bulkhead = self._bulkheads.setdefault(controller, Bulkhead(self._limits.calls_per_controller))
        if not bulkhead.enter():
            raise ControllerBusy(f"{controller} has {bulkhead.in_flight} calls in flight", after_seconds=self._limits.put_off_seconds)
        try:
            yield
        finally:
            bulkhead.leave()
            if not bulkhead.in_flight:
                del self._bulkheads[controller]

    async def _asked(self, call: Call, credentials: Credentials) -> Verdict:
        question = call.question
        sent = None if question is None else self._cache.answer_to(question, now=monotonic())
        answer = await self._answer(call, credentials, sent)
        verdict = await self._judged(answer, sent, credentials)
        if question is not None and isinstance(verdict, Accepted):
            self._cache.remember(question, etag=answer.etag, body=verdict.body, policy=call.target.etag or EtagPolicy(), now=monotonic())
        return verdict

    async def _answer(self, call: Call, credentials: Credentials, sent: Remembered | None) -> Answer:
        target, marked = call.target, Steps()
        current_steps.set(marked)
        series = self._metrics.series_of(target)
        with series.in_flight(now=marked.began_at):
            answer = await self._webhook_at(target.endpoint).send(
                call.body, headers=_headers(call, credentials, sent), credentials=credentials, timeout_seconds=target.timeout_seconds
            )
        series.answered(answer.status, marked)
        return answer

    async def _judged(self, answer: Answer, sent: Remembered | None, credentials: Credentials) -> Verdict:
        judging = partial(
            judge, answer, sent=sent, now=datetime.now(UTC), limit=self._limits.max_response_bytes, secrets=credentials.secrets
        )
        if answer.coding and len(answer.body) > INFLATED_ASIDE_BYTES:
            return await asyncio.to_thread(judging)
        return judging()

    def _webhook_at(self, endpoint: Endpoint) -> Webhook:
        webhook = self._webhooks.get(endpoint)
        if webhook is None:
            webhook = self._webhooks[endpoint] = Webhook(endpoint, self._transport)
        return webhook


def _headers(call: Call, credentials: Credentials, sent: Remembered | None) -> dict[str, str]:
    """What only this request says in its headers."""
    headers: dict[str, str] = {}
    if credentials.authorization is not None:
        headers["Authorization"] = credentials.authorization
    if sent is not None:
        headers["If-None-Match"] = sent.etag
    if call.traceparent:
        headers["traceparent"] = call.traceparent
    return headers
