"""A hook call in a trace: its span is a child of the reconciler's and the parent of the webhook's.

Its steps are events.
"""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from process import gateway_process
from webserver import WebServer, answers, serving

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def spans_at(collector: WebServer) -> list[Span]:
    found: list[Span] = []
    for request in collector.requests:
        export = ExportTraceServiceRequest.FromString(request.body)
        found += [span for resource in export.resource_spans for scope in resource.scope_spans for span in scope.spans]
    return found


async def test_hook_call_is_a_span_with_its_steps_that_reaches_the_webhook():
    async with serving(answers(200, b"")) as collector, serving(answers(200)) as hook:
        async with gateway_process(otlp_endpoint=collector.url("")) as gateway:
            for _ in range(2):
                await gateway.post(hook.url(), traceparent=f"00-{TRACE}-{PARENT}-01")
            assert await gateway.stopped() == 0

        first, second = sorted(spans_at(collector), key=lambda span: span.start_time_unix_nano)
        assert (first.name, first.trace_id.hex(), first.parent_span_id.hex()) == ("hook sync", TRACE, PARENT)
        assert [event.name for event in first.events] == [
            "dns_start",
            "dns_done",
            "connect_start",
            "connect_done",
            "first_byte",
            "body_done",
        ]
        assert [event.name for event in second.events] == ["first_byte", "body_done"]
        assert {attribute.key: attribute.value.string_value for attribute in first.attributes} == {
            "controller": "CompositeController/sets",
            "hook": "sync",
            "endpoint": hook.url(),
            "verdict": "Accepted",
        }
        assert [request.headers["traceparent"] for request in hook.requests] == [
            f"00-{TRACE}-{span.span_id.hex()}-01" for span in (first, second)
        ]


async def test_without_collector_the_reconcilers_context_goes_through():
    async with serving(answers(200)) as hook, gateway_process() as gateway:
        await gateway.post(hook.url(), traceparent=f"00-{TRACE}-{PARENT}-01")

    assert hook.requests[0].headers["traceparent"] == f"00-{TRACE}-{PARENT}-01"


async def test_malformed_trace_context_is_not_passed_on():
    async with serving(answers(200)) as hook, gateway_process() as gateway:
        await gateway.post(hook.url(), traceparent="00-nonsense")

    assert "traceparent" not in hook.requests[0].headers
