"""Whole calls: cached answers, circuits, limits and metrics, which outlive a single call."""

import asyncio
import gzip
from math import inf
from time import monotonic
from typing import Any

import pytest
from in_process import GatewayClient, running_gateway
from prometheus_client import REGISTRY
from webserver import Request, Script, ServerConnection, WebServer, answers, never_answers, response, sends, serving

from metaloop.common.faults import Fault
from metaloop.common.hooks.call import Accepted, NotModified, Rejected, Throttled, Verdict
from metaloop.common.json import JsonObject

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def with_etag(hook: WebServer, **times: int) -> JsonObject:
    return {"url": hook.url(), "etag": {"enabled": True, **times}}


def one_after_another(*responses: bytes) -> Script:
    """A script that answers each request with the next response."""
    left = iter(responses)

    async def script(_: Request, connection: ServerConnection) -> None:
        await connection.send(next(left))

    return script


def validators(hook: WebServer) -> list[str | None]:
    """The If-None-Match header of each request."""
    return [request.headers.get("if-none-match") for request in hook.requests]


# CachedAnswer answers.


async def test_cached_answer_is_used_until_there_is_a_new_one():
    script = one_after_another(
        response(200, b"first", etag='"1"'),
        response(304, b""),
        response(412, b""),
        response(200, b"second", etag='"2"'),
        response(304, b""),
    )
    async with serving(script) as hook, running_gateway() as gateway:
        verdicts = [await gateway.call(with_etag(hook)) for _ in range(5)]

    first, second = b"first", b"second"
    assert verdicts == [
        Accepted(body=first),
        NotModified(body=first),
        NotModified(body=first),
        Accepted(body=second),
        NotModified(body=second),
    ]
    assert validators(hook) == [None, '"1"', '"1"', '"1"', '"2"']


async def test_unless_enabled_no_tag_is_sent_and_304_is_an_error():
    async with serving(one_after_another(response(200, etag='"1"'), response(304, b""))) as hook, running_gateway() as gateway:
        await gateway.call(hook.url())

        assert isinstance(await gateway.call(hook.url()), Rejected)
    assert validators(hook) == [None, None]


@pytest.mark.parametrize(
    "second",
    [{"parent": "parent-2"}, {"revision": "revision-2"}, {"controller": "others"}, {"hook": "finalize"}],
    ids=lambda it: next(iter(it)),
)
async def test_cached_answer_is_not_used_for_another_parent_or_hook(second: dict[str, Any]):
    async with serving(answers(200, b"{}", etag='"1"')) as hook, running_gateway() as gateway:
        await gateway.call(with_etag(hook))
        await gateway.call(with_etag(hook), **second)

    assert validators(hook) == [None, None]


async def test_changed_request_uses_the_cached_answer_only_if_the_webhook_agrees():
    async def compares(request: Request, connection: ServerConnection) -> None:
        tag = f'"{request.body.decode()}"'
        is_same = request.headers.get("if-none-match") == tag
        await connection.send(response(304, b"") if is_same else response(200, request.body, etag=tag))

    async with serving(compares) as hook, running_gateway() as gateway:
        verdicts = [await gateway.call(with_etag(hook), body=body) for body in (b"a", b"a", b"b", b"a")]

    assert verdicts == [Accepted(body=b"a"), NotModified(body=b"a"), Accepted(body=b"b"), Accepted(body=b"a")]


async def test_304_refers_to_the_tag_that_its_own_call_sent():
    """Even if a later call has replaced the cached answer meanwhile."""
    waits, goes_on = asyncio.Event(), asyncio.Event()

    async def script(request: Request, connection: ServerConnection) -> None:
        if request.body == b"slow":
            waits.set()
            await goes_on.wait()
            await connection.send(response(304, b""))
        else:
            await connection.send(response(200, request.body, etag=f'"{request.body.decode()}"'))

    async with serving(script) as hook, running_gateway() as gateway:
        await gateway.call(with_etag(hook), body=b"old")
        slow = asyncio.create_task(gateway.call(with_etag(hook), body=b"slow"))
        await waits.wait()
        await gateway.call(with_etag(hook), body=b"new")
        goes_on.set()

        assert await slow == NotModified(body=b"old")
        assert validators(hook) == [None, '"old"', '"old"']


async def test_two_gateways_used_in_turn_never_give_an_old_answer():
    """Each has its own cache, and only the webhook says whether an answer is still valid."""
    state = 0

    async def current(request: Request, connection: ServerConnection) -> None:
        tag, body = f'"{state}"', f"answer {state}".encode()
        await connection.send(response(304, b"") if request.headers.get("if-none-match") == tag else response(200, body, etag=tag))

    async with serving(current) as hook, running_gateway() as one, running_gateway() as other:
        for changes, gateway in ((0, one), (0, other), (0, one), (1, other), (0, one), (1, one), (0, other), (0, other)):
            state += changes
            verdict = await gateway.call(with_etag(hook))
            assert isinstance(verdict, Accepted | NotModified)
            assert verdict.body == f"answer {state}".encode()
    assert len(hook.requests) == 8


async def test_compressed_answer_is_cached_decompressed():
    compressed = response(200, gzip.compress(b"plain"), etag='"1"', content_encoding="gzip")
    async with serving(one_after_another(compressed, response(304, b""))) as hook, running_gateway() as gateway:
        await gateway.call(with_etag(hook))

        assert await gateway.call(with_etag(hook)) == NotModified(body=b"plain")


async def test_failed_call_keeps_the_cached_answer():
    script = one_after_another(response(200, b"first", etag='"1"'), response(500, b""), response(304, b""))
    async with serving(script) as hook, running_gateway() as gateway:
        verdicts = [await gateway.call(with_etag(hook)) for _ in range(3)]

    assert verdicts[2] == NotModified(body=b"first")


# One endpoint that fails, and the others.


async def in_a_row(gateway: GatewayClient, url: str, *, times: int) -> list[Verdict]:
    return [await gateway.call(url) for _ in range(times)]


def no_answer() -> Script:
    return sends(b"", then_closes=True)


async def test_endpoint_that_does_not_answer_is_no_longer_called():
    async with (
        serving(no_answer()) as hook,
        running_gateway(breaker_threshold=3, breaker_shortest_seconds=60, breaker_longest_seconds=60) as gateway,
    ):
        verdicts = await in_a_row(gateway, hook.url(), times=10)

    assert [type(verdict) for verdict in verdicts] == [Rejected] * 3 + [Throttled] * 7
    assert len(hook.requests) == 3


@pytest.mark.parametrize(("script", "problem"), [(no_answer(), "ConnectionLost"), (answers(503), "status 503")])
async def test_call_that_is_put_off_says_why_the_circuit_is_open(script: Script, problem: str):
    async with (
        serving(script) as hook,
        running_gateway(breaker_threshold=1, breaker_shortest_seconds=60, breaker_longest_seconds=60) as gateway,
    ):
        *_, verdict = await in_a_row(gateway, hook.url(), times=2)

    assert isinstance(verdict, Throttled)
    assert verdict.fault is Fault.CIRCUIT_OPEN
    assert verdict.after_seconds is not None
    assert 30 < verdict.after_seconds < 60 * 1.3
    assert verdict.message == f"circuit open: localhost:{hook.port} did not answer the last calls ({problem})"


async def test_of_many_calls_one_at_a_time_probes_an_endpoint_that_was_down():
    async with serving(no_answer()) as hook, running_gateway(breaker_threshold=1, breaker_shortest_seconds=0.05) as gateway:
        await gateway.call(hook.url())
        await hook.until(lambda it: it.in_flight == 0)
        hook.script, hook.most_in_flight, asked = never_answers, 0, len(hook.requests)

        callers = [asyncio.create_task(gateway.call_until(lambda it: isinstance(it, Accepted), hook.url())) for _ in range(20)]
        await hook.until(lambda it: it.in_flight == 1)
        await asyncio.gather(*(gateway.call(hook.url()) for _ in range(20)))

        assert (hook.most_in_flight, len(hook.requests) - asked) == (1, 1)
        for caller in callers:
            caller.cancel()


async def test_endpoint_that_answers_the_probe_is_called_again():
    async with serving(no_answer()) as hook, running_gateway(breaker_threshold=1, breaker_shortest_seconds=0.05) as gateway:
        await gateway.call(hook.url())
        hook.script = answers(200)

        await gateway.call_until(lambda it: isinstance(it, Accepted), hook.url())

        assert all(isinstance(verdict, Accepted) for verdict in await in_a_row(gateway, hook.url(), times=5))


async def test_cancelled_probe_does_not_keep_the_circuit_open():
    async with serving(no_answer()) as hook, running_gateway(breaker_threshold=1, breaker_shortest_seconds=0.05) as gateway:
        await gateway.call(hook.url())
        await hook.until(lambda it: it.in_flight == 0)
        hook.script = never_answers
        probe = asyncio.create_task(gateway.call_until(lambda it: isinstance(it, Accepted), hook.url()))
        await hook.until(lambda it: it.in_flight == 1)
        probe.cancel()
        await hook.until(lambda it: it.in_flight == 0)
        hook.script = answers(200)

        await gateway.call_until(lambda it: isinstance(it, Accepted), hook.url())


@pytest.mark.parametrize("status", [400, 404, 429, 500])
async def test_endpoint_that_answers_with_an_error_is_not_down(status: int):
    async with serving(answers(status)) as hook, running_gateway(breaker_threshold=2) as gateway:
        await in_a_row(gateway, hook.url(), times=10)

    assert len(hook.requests) == 10


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_endpoint_whose_proxy_says_that_it_is_not_there_is_down(status: int):
    async with (
        serving(answers(status)) as hook,
        running_gateway(breaker_threshold=2, breaker_shortest_seconds=60, breaker_longest_seconds=60) as gateway,
    ):
        await in_a_row(gateway, hook.url(), times=10)

    assert len(hook.requests) == 2


async def test_circuit_state_is_in_the_metrics():
    async with serving(no_answer()) as hook, running_gateway(breaker_threshold=1) as gateway:
        await gateway.call(hook.url("/sync?token=hunter2"))

        assert REGISTRY.get_sample_value("metaloop_hookgateway_circuit_state", {"url": hook.url()}) == 2


async def test_path_that_is_down_does_not_open_the_circuits_of_its_host():
    async def script(request: Request, connection: ServerConnection) -> None:
        if request.path == "/bad":
            connection.close()
        else:
            await connection.send(response(200))

    async with serving(script) as hook, running_gateway(breaker_threshold=1) as gateway:
        await in_a_row(gateway, hook.url("/bad"), times=3)

        assert await gateway.call(hook.url("/good")) == Accepted(body=b"{}")


async def test_too_many_calls_of_one_controller_are_put_off_and_others_are_not():
    async with serving(never_answers) as hanging, serving(answers(200)) as good, running_gateway(calls_per_controller=2) as gateway:
        calls = [asyncio.create_task(gateway.call(hanging.url())) for _ in range(2)]
        await hanging.until(lambda it: it.in_flight == 2)

        put_off = await gateway.call(good.url())
        assert isinstance(put_off, Throttled)
        assert (put_off.after_seconds, put_off.fault) == (0.5, Fault.CONTROLLER_BUSY)
        assert put_off.message == "CompositeController/sets has 2 calls in flight"
        assert await gateway.call(good.url(), controller="others") == Accepted(body=b"{}")

        for call in calls:
            call.cancel()
        await hanging.until(lambda it: it.in_flight == 0)
        assert await gateway.call(good.url()) == Accepted(body=b"{}")


async def test_hundreds_of_calls_are_in_flight_at_once():
    async with serving(never_answers) as hook, running_gateway() as gateway:
        calls = [asyncio.create_task(gateway.call(hook.url())) for _ in range(400)]

        await hook.until(lambda it: it.in_flight == 400)

        for call in calls:
            call.cancel()


# Metrics.


async def test_metrics_have_metacontrollers_names_and_labels():
    async with serving(answers(200)) as hook, running_gateway() as gateway:
        await gateway.call(hook.url("/sync?token=hunter2"), controller="counted")
        await gateway.call(hook.url("/sync?token=hunter2"), controller="counted")

        labels = {"url": hook.url(), "controller_name": "counted", "controller_type": "CompositeController"}
        value = REGISTRY.get_sample_value
        assert value("metacontroller_sync_requests_total", labels | {"code": "200", "method": "post"}) == 2
        assert value("metacontroller_sync_request_duration_histogram_seconds_count", labels | {"method": "post"}) == 2
        assert value("metacontroller_sync_dns_duration_histogram_seconds_count", labels | {"event": "dns_done"}) == 1
        assert value("metacontroller_sync_in_flight_requests", labels) == 0
        buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, inf]
        assert _buckets_of("metacontroller_sync_request_duration_histogram_seconds", labels) == buckets


def _buckets_of(name: str, labels: dict[str, str]) -> list[float]:
    """The upper bounds of a histogram's buckets."""
    samples = [sample for metric in REGISTRY.collect() for sample in metric.samples if sample.name == f"{name}_bucket"]
    return [float(sample.labels["le"]) for sample in samples if labels.items() <= sample.labels.items()]


async def test_request_without_an_answer_is_not_counted_as_answered():
    async with serving(no_answer()) as hook, running_gateway() as gateway:
        await gateway.call(hook.url(), controller="unanswered")

    every = [sample for metric in REGISTRY.collect() for sample in metric.samples if sample.labels.get("controller_name") == "unanswered"]
    assert [sample.name for sample in every if sample.name == "metacontroller_sync_requests_total"] == []
    assert [(it.labels["verdict"], it.labels["reason"]) for it in every if it.name == "metaloop_hookgateway_verdicts_total"] == [
        ("Rejected", "ConnectionLost")
    ]


async def test_endpoint_that_is_no_longer_called_is_dropped_with_its_metrics():
    async with serving(answers(200)) as hook, running_gateway() as gateway:
        await gateway.call(hook.url(), controller="forgotten")
        await gateway.gateway.clean_up(unused_since=monotonic())
        await hook.until(lambda it: it.open_connections == 0)

    every = [sample for metric in REGISTRY.collect() for sample in metric.samples]
    assert [it for it in every if it.labels.get("controller_name") == "forgotten" and it.name.startswith("metacontroller")] == []
