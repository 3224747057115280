"""Read-only debug views: the queue with each key's class, age and reason; leases, caches and controllers.

They are served on a port of their own, because they show names of objects in the cluster: on loopback, or to those who
know a token.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hmac import compare_digest
from math import isinf

from fastapi import FastAPI, Request, Response

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.json import JsonObject, JsonValue, dumps
from metaloop.common.objects import unstructured
from metaloop.common.server import App, serving
from metaloop.common.settings import Listener
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.controller_numbers import ControllerNumbers
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.entry import Entry, Lease
from metaloop.watcher.core.health import ControllerHealth
from metaloop.watcher.core.subscriptions import ParentSubscriptions, RelatedSubscriptions
from metaloop.watcher.explain import Explainer, ParentName, shown_entry
from metaloop.watcher.health_writer import HealthSource
from metaloop.watcher.workqueue import WorkQueue

log = get_logger()

TOKEN_HEADER = "X-Metaloop-Debug-Token"  # noqa: S105 - the name of a header
"""Not Authorization: the API server, through whose proxy the views are read, keeps that header for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """What can be looked at, each as JSON."""

    queue: WorkQueue
    caches: Caches
    subscriptions: RelatedSubscriptions
    health: HealthSource
    numbers: ControllerNumbers
    explainer: Explainer

    def show_queue(self) -> list[JsonValue]:
        """Every key that is not at rest: its stage and reason, what marked it again, and when its timers fire."""
        now = self.queue.clock()
        return [shown_entry(entry, now) for entry in self.queue.entries()]

    def show_leases(self) -> list[JsonValue]:
        """Every lease: who holds it, and when it expires unless it is renewed."""
        now = self.queue.clock()
        return [_lease(entry, entry.lease, now) for entry in self.queue.entries() if entry.lease is not None]

    def show_cache(self) -> list[JsonValue]:
        """Each watch: what is cached, and how old that is at worst."""
        now = asyncio.get_running_loop().time()
        return [
            {
                "resource": str(cache.watch.id),
                "objects": len(cache.objects),
                "bytes": cache.bytes,
                "synced": cache.is_synced,
                "resourceVersion": str(cache.version),
                "silentSeconds": round(now - cache.heard_at, 3),
                "problem": cache.problem,
            }
            for cache in self.caches
        ]

    def show_subscriptions(self) -> list[JsonValue]:
        """Each parent's subscriptions to related objects."""
        return [_subscribed(key, subscribed) for key, subscribed in self.subscriptions.all()]

    def show_controllers(self) -> list[JsonValue]:
        """Each installed controller: its health, its parts, and how many of its keys are where."""
        rows = {gauge.name: gauge.read() for gauge in self.numbers.of_keys}
        return [
            _health(health) | {name: row.get(controller_of(health), 0) for name, row in rows.items()} | self._work(controller_of(health))
            for health in self.health()
        ]

    def _work(self, controller: ControllerId) -> JsonObject:
        """What the queue counted of a controller in this leader term."""
        flow = self.queue.flows().get(controller)
        if flow is None:
            return {"oldestSeconds": 0.0, "synced": 0, "retries": 0, "workedBuckets": []}
        return {
            "oldestSeconds": round(flow.longest_wait(self.queue.clock()), 3),
            "synced": flow.numbers.worked.count,
            "retries": flow.numbers.retries,
            "workedBuckets": [[None if isinf(bound) else bound, count] for bound, count in flow.numbers.worked.cumulative()],
        }

    async def serve(self, listener: Listener, *, token: str) -> None:
        """Serve the views until cancelled, as `/debug/<name>`, to those who send the token, if there is one."""
        async with serving(self.app(token=token), listener) as address:
            log.info("views.served", **{fields.HOST: address.host, fields.PORT: address.port})
            await asyncio.Event().wait()

    def app(self, *, token: str) -> FastAPI:
        """The views as an application, for those who send the token; for everybody where that is empty."""
        app = App("metaloop watcher views")
        for name, show in (
            ("queue", self.show_queue),
            ("leases", self.show_leases),
            ("cache", self.show_cache),
            ("subscriptions", self.show_subscriptions),
            ("controllers", self.show_controllers),
        ):
            app.add_api_route(f"/debug/{name}", _endpoint(show, token))

        async def explain(request: Request) -> Response:
            asked = {field: request.query_params.get(field, "") for field in ("kind", "namespace", "name")}
            return _answer(request, lambda: self.explainer.explain(ParentName(**asked)), token)

        app.add_api_route("/debug/explain", explain)
        return app


def _endpoint(show: Callable[[], list[JsonValue]], token: str) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:  # async, so that it runs in the event loop: the views read live state
        return _answer(request, show, token)

    return respond


def _answer(request: Request, show: Callable[[], list[JsonValue]], token: str) -> Response:
    if token and not compare_digest(request.headers.get(TOKEN_HEADER, "").encode(), token.encode()):
        return Response("the header X-Metaloop-Debug-Token is missing or wrong", status_code=401)
    return Response(dumps(show()), media_type="application/json")


def _lease(entry: Entry, lease: Lease, now: float) -> JsonObject:
    return {
        "key": str(entry.key),
        "lease": lease.id,
        "worker": lease.worker,
        "serves": lease.serves.reason,
        "ageSeconds": round(now - lease.serves.since, 3),
        "expiresInSeconds": round(lease.expires - now, 3),
    }


def _subscribed(key: JobKey, subscribed: ParentSubscriptions) -> JsonObject:
    return {
        "key": str(key),
        "fingerprint": subscribed.fingerprint,
        "queries": [subscription.query.to_wire() for subscription in subscribed.subscriptions],
    }


def controller_of(health: ControllerHealth) -> ControllerId:
    """Which controller it is."""
    return ControllerId(unstructured.kind(health.raw), unstructured.name(health.raw))


def _health(health: ControllerHealth) -> JsonObject:
    summary = health.summary
    return {
        "controller": unstructured.describe(health.raw),
        "generation": summary.generation,
        "ready": summary.is_ready,
        "reason": summary.reason,
        "message": summary.message,
        "parents": summary.parents,
        "failingParents": summary.failing,
    }
