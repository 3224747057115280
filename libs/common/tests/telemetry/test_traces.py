"""Spans, and a collector on loopback that records what it gets."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from metaloop.common.telemetry.traces import span

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Handler(BaseHTTPRequestHandler):
    exports: dict[str, ExportTraceServiceRequest]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.exports[self.path] = ExportTraceServiceRequest.FromString(body)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the base class has it
        """Nothing is logged."""


class Collector(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.exports: dict[str, ExportTraceServiceRequest] = {}
        super().__init__(("127.0.0.1", 0), type("OurHandler", (Handler,), {"exports": self.exports}))


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        serving = threading.Thread(target=collector.serve_forever)
        serving.start()
        yield collector
        collector.shutdown()
        serving.join()


def traced(endpoint: str, program: str, **environment: str) -> str:
    """The output of a program that runs in its own process, because tracing is configured per process."""
    before = f"from metaloop.common.telemetry.traces import *; configure_tracing('reconciler', {endpoint!r})\n"
    after = "\nflush_traces()"
    done = subprocess.run(
        [sys.executable, "-c", before + program + after],
        capture_output=True,
        text=True,
        check=True,
        timeout=90,
        env={**os.environ, **environment},
    )
    return done.stdout.strip()


def test_without_a_collector_the_traceparent_is_passed_on():
    with span("sync", traceparent=TRACEPARENT) as current:
        current.set("parent", "p")
        current.fail("no")

        assert current.traceparent == TRACEPARENT


def test_without_a_collector_no_trace_begins():
    with span("sync") as current:
        assert current.traceparent == ""


def test_span_is_a_child_of_the_given_traceparent(collector: Collector):
    program = f"""
with span("sync", traceparent={TRACEPARENT!r}, attributes={{"parent": "p"}}) as current:
    current.fail("no")
    print(current.traceparent)
"""
    traceparent = traced(f"http://127.0.0.1:{collector.server_port}", program)

    [resource] = collector.exports["/v1/traces"].resource_spans
    [sent] = resource.scope_spans[0].spans
    assert (sent.name, sent.status.message) == ("sync", "no")
    assert sent.trace_id.hex() == TRACEPARENT.split("-")[1]
    assert sent.parent_span_id.hex() == TRACEPARENT.split("-")[2]
    assert traceparent == f"00-{sent.trace_id.hex()}-{sent.span_id.hex()}-01"
    assert [(item.key, item.value.string_value) for item in sent.attributes] == [("parent", "p")]
    assert ("service.name", "metaloop-reconciler") in [(item.key, item.value.string_value) for item in resource.resource.attributes]


def test_span_within_another_is_its_child(collector: Collector):
    traced(f"http://127.0.0.1:{collector.server_port}", "with span('outer'), span('inner'): pass")

    inner, outer = collector.exports["/v1/traces"].resource_spans[0].scope_spans[0].spans
    assert (inner.name, inner.parent_span_id) == ("inner", outer.span_id)


def test_unreachable_collector_delays_nothing():
    assert traced("http://127.0.0.1:1", "with span('sync') as current: print(len(current.traceparent))") == "55"


NO_TRACEPARENTS = ["00", "00-x-y-01", f"00-{'0' * 32}-{'0' * 16}-01", f"00-{'g' * 32}-b7ad6b7169203331-01", TRACEPARENT.upper()]


def test_malformed_traceparent_begins_a_new_trace(collector: Collector):
    traced(f"http://127.0.0.1:{collector.server_port}", f"for text in {NO_TRACEPARENTS!r}:\n with span('sync', traceparent=text): pass")

    spans = collector.exports["/v1/traces"].resource_spans[0].scope_spans[0].spans
    assert [sent.parent_span_id for sent in spans] == [b""] * len(NO_TRACEPARENTS)
    assert len({sent.trace_id for sent in spans}) == len(NO_TRACEPARENTS)


def test_tracing_off_imports_no_sdk():
    script = "import sys; from metaloop.common.telemetry.traces import configure_tracing; configure_tracing('x', ''); sys.exit('opentelemetry' in sys.modules)"

    subprocess.run([sys.executable, "-c", script], check=True, timeout=90)


def attributes_sent_to(collector: Collector) -> dict[str, str]:
    """The resource attributes of the last export."""
    [resource] = collector.exports["/v1/traces"].resource_spans
    return {item.key: item.value.string_value for item in resource.resource.attributes}


def test_standard_variable_alone_turns_traces_on(collector: Collector):
    url = f"http://127.0.0.1:{collector.server_port}"

    traced("", "with span('sync'): pass", OTEL_EXPORTER_OTLP_ENDPOINT=url)

    assert attributes_sent_to(collector)["service.name"] == "metaloop-reconciler"


def test_users_resource_attributes_win(collector: Collector):
    url = f"http://127.0.0.1:{collector.server_port}"

    traced(url, "with span('sync'): pass", OTEL_RESOURCE_ATTRIBUTES="service.instance.id=mine,deployment.environment.name=test")

    sent = attributes_sent_to(collector)
    assert (sent["service.instance.id"], sent["deployment.environment.name"]) == ("mine", "test")


def test_sampler_of_the_user_is_obeyed(collector: Collector):
    url = f"http://127.0.0.1:{collector.server_port}"
    program = f"""
with span("unsampled"): pass
with span("sampled by its caller", traceparent={TRACEPARENT!r}): pass
"""

    traced(url, program, OTEL_TRACES_SAMPLER="parentbased_always_off")

    [sent] = collector.exports["/v1/traces"].resource_spans[0].scope_spans[0].spans
    assert sent.name == "sampled by its caller"
