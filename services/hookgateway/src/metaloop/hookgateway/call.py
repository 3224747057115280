"""Makes one hook call, from the target to the verdict. The page to read first.

_admitted   bulkhead and pacing of the controller                 ends early: ControllerBusy
credentials of the endpoint, as they are now                      ends early: CredentialsUnusable
_exchanged  the cached answer's tag, the call to the webhook      ends early: any other HookError
_judged     the verdict on the answer, which may be cached        ends early: StatusUnexpected, Body…
_note       metrics, span, and a line in the log for a rejection
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final

from metaloop.common.hooks.call import Accepted, NotModified, Rejected, Throttled, Verdict
from metaloop.common.http.body import Body
from metaloop.common.job import ControllerId
from metaloop.common.machine import monotonic, utc_now
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.telemetry.traces import span
from metaloop.hookgateway.core.budgets import Bulkhead
from metaloop.hookgateway.core.credentials import NO_CREDENTIALS, Credentials
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.core.etag import CachedAnswer, CacheKey, EtagCache
from metaloop.hookgateway.core.target import Target
from metaloop.hookgateway.core.verdict import Answer, verdict_of_answer, verdict_of_error
from metaloop.hookgateway.credential_store import CredentialStore
from metaloop.hookgateway.errors import ControllerBusy, HookError
from metaloop.hookgateway.metrics import Metrics
from metaloop.hookgateway.pacing import Pacer
from metaloop.hookgateway.steps import Steps, current_steps
from metaloop.hookgateway.webhook import Transport, Webhook

DECOMPRESSED_INLINE_BYTES: Final = 4096
"""A larger compressed body is decompressed in a thread.

It may grow a thousandfold, and other calls must not wait for that.
"""

STARTS_PER_ITERATION: Final = 8
"""How many calls of one controller start in one iteration of the event loop."""

VERDICT_NAMES: Final[dict[type[Verdict], str]] = {
    Accepted: "Accepted",
    NotModified: "NotModified",
    Throttled: "Throttled",
    Rejected: "Rejected",
}
"""What metrics and spans call a verdict."""

log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call as the reconciler makes it."""

    target: Target
    parent_uid: str
    revision: str
    traceparent: str
    body: Body

    @property
    def cache_key(self) -> CacheKey | None:
        """The key of its cached answer, if the controller wants answers to be cached."""
        if not self.target.etag.enabled or not self.parent_uid:
            return None
        return self.target.cache_key(parent_uid=self.parent_uid, revision=self.revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one controller and of one answer."""

    calls_per_controller: int
    put_off_seconds: float
    max_response_bytes: int


@dataclass(frozen=True, slots=True)
class ControllerLimits:
    """What bounds the calls of one controller."""

    bulkhead: Bulkhead
    pacer: Pacer


class Gateway:
    """Makes calls. Keeps what outlives them: webhooks with their circuits, cached answers, limits per controller."""

    def __init__(self, transport: Transport, *, limits: Limits, cache: EtagCache, credentials: CredentialStore, metrics: Metrics) -> None:
        self._transport = transport
        self._limits = limits
        self._cache = cache
        self._credentials = credentials
        self._metrics = metrics
        self._webhooks: dict[Endpoint, Webhook] = {}
        self._controllers: dict[ControllerId, ControllerLimits] = {}
        """Only those of controllers with calls in flight."""

    async def verdict_on(self, call: Call) -> Verdict:
        """Make the call. Returns what the reconciler is told. Cancelling this closes the connection to the webhook."""
        target = call.target
        with span(f"hook {target.hook}", traceparent=call.traceparent, attributes=_attributes(target)) as spanned:
            steps, credentials = Steps(spanned), NO_CREDENTIALS
            try:
                async with self._admitted(target.controller):
                    credentials = await self._credentials.credentials_of(target.endpoint)
                    verdict = await self._exchanged(call, credentials, steps)
            except HookError as error:
                verdict = verdict_of_error(error, secrets=credentials.secrets)
            self._note(verdict, target, steps)
        return verdict

    def connect_limits(self) -> Mapping[str, float]:
        """How many calls may wait to be accepted, by URL, for the endpoints that have such a limit now."""
        limits = {webhook.endpoint.label: webhook.connect_limit for webhook in self._webhooks.values()}
        return {url: limit for url, limit in limits.items() if limit < inf}

    async def close(self) -> None:
        """Close every connection, now or when its call ends."""
        for webhook in self._webhooks.values():
            await webhook.close()

    async def clean_up(self, *, unused_since: float) -> None:
        """Drop expired answers, and whatever belongs to endpoints that have not been called since then."""
        self._cache.evict_expired(now=monotonic())
        self._credentials.forget_unused_since(unused_since)
        self._metrics.forget_unused_since(unused_since)
        for webhook in [webhook for webhook in self._webhooks.values() if webhook.used_at < unused_since]:
            del self._webhooks[webhook.endpoint]
            await webhook.discard()

    @asynccontextmanager
    async def _admitted(self, controller: ControllerId) -> AsyncIterator[None]:
        """A block that counts as one call in flight of the controller. Raises ControllerBusy if it has too many."""
        limits = self._controllers.get(controller)
        if limits is None:
            bulkhead, pacer = Bulkhead(self._limits.calls_per_controller), Pacer(STARTS_PER_ITERATION)
            limits = self._controllers[controller] = ControllerLimits(bulkhead, pacer)
        bulkhead = limits.bulkhead
        if not bulkhead.try_acquire():
            raise ControllerBusy(f"{controller} has {bulkhead.in_flight} calls in flight", after_seconds=self._limits.put_off_seconds)
        try:
            await limits.pacer.wait()
            yield
        finally:
            bulkhead.release()
            if not bulkhead.in_flight:
                del self._controllers[controller]

    async def _exchanged(self, call: Call, credentials: Credentials, steps: Steps) -> Verdict:
        key = call.cache_key
        cached = None if key is None else self._cache.get(key, now=monotonic())
        answer = await self._answer(call, _headers(credentials, cached, steps.span.traceparent), credentials, steps)
        verdict = await self._judged(answer, cached, credentials)
        if key is not None and isinstance(verdict, Accepted):
            self._cache.put(key, etag=answer.etag, body=verdict.body, policy=call.target.etag, now=monotonic())
        return verdict

    async def _answer(self, call: Call, headers: dict[str, str], credentials: Credentials, steps: Steps) -> Answer:
        target = call.target
        current_steps.set(steps)
        series = self._metrics.series_of(target)
        with series.in_flight():
            answer = await self._webhook_at(target.endpoint).send(
                call.body, headers=headers, credentials=credentials, timeout_seconds=target.timeout_seconds
            )
        series.count_answer(answer.status, steps)
        return answer

    async def _judged(self, answer: Answer, cached: CachedAnswer | None, credentials: Credentials) -> Verdict:
        limit = self._limits.max_response_bytes
        judge = partial(verdict_of_answer, answer, sent=cached, now=utc_now(), limit=limit, secrets=credentials.secrets)
        if answer.coding and len(answer.body) > DECOMPRESSED_INLINE_BYTES:
            return await asyncio.to_thread(judge)
        return judge()

    def _webhook_at(self, endpoint: Endpoint) -> Webhook:
        webhook = self._webhooks.get(endpoint)
        if webhook is None:
            webhook = self._webhooks[endpoint] = Webhook(endpoint, self._transport)
        return webhook

    def _note(self, verdict: Verdict, target: Target, steps: Steps) -> None:
        """Count the verdict and record it in the span. Log a rejection."""
        name, reason = VERDICT_NAMES[type(verdict)], verdict.fault.reason if isinstance(verdict, Rejected | Throttled) else ""
        self._metrics.series_of(target).count_verdict(name, reason)
        steps.span.set(fields.VERDICT, name)
        if reason:
            steps.span.set(fields.REASON, reason)
        if isinstance(verdict, Rejected):
            steps.span.fail(verdict.message)
            details = {fields.REASON: reason, fields.ERROR: verdict.message, fields.SECONDS: round(steps.elapsed(), 3)}
            log.warning("hook.rejected", **_attributes(target), **details)


def _attributes(target: Target) -> dict[str, str]:
    return {fields.CONTROLLER: str(target.controller), fields.HOOK: target.hook, fields.ENDPOINT: target.endpoint.label}


def _headers(credentials: Credentials, cached: CachedAnswer | None, traceparent: str) -> dict[str, str]:
    """The headers of one request, beside those of all requests."""
    headers: dict[str, str] = {}
    if credentials.authorization is not None:
        headers["Authorization"] = credentials.authorization
    if cached is not None:
        headers["If-None-Match"] = cached.etag
    if traceparent:
        headers["traceparent"] = traceparent
    return headers
