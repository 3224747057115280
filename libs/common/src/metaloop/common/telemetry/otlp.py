"""Spans recorded with OpenTelemetry and exported to an OTLP collector; imported only where tracing is on."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span as OpenTelemetrySpan
from opentelemetry.trace import StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from metaloop.common.telemetry import fields
from metaloop.common.telemetry.logs import bound
from metaloop.common.telemetry.spans import Attributes, AttributeValue

_HEADER = "traceparent"

_trace_context = TraceContextTextMapPropagator()


class OtlpRecorder:
    """Exports spans to a URL in batches, from a thread of its own.

    The SDK reads the other variables of OpenTelemetry: OTEL_TRACES_SAMPLER, OTEL_BSP_* and so on.
    """

    def __init__(self, url: str, resource_attributes: Mapping[str, str]) -> None:
        # What the user says in OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME wins.
        resource = Resource.create({**resource_attributes}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url)))
        self._tracer = self._provider.get_tracer("metaloop")

    @contextmanager
    def span(self, name: str, *, traceparent: str, attributes: Attributes) -> Iterator["RecordedSpan"]:
        """A block as a child span of `traceparent`, or of the enclosing span; its log lines carry the span's ids.

        A malformed `traceparent` begins a new trace, as the W3C recommendation asks.
        """
        parent = _trace_context.extract({_HEADER: traceparent}) if traceparent else None
        with self._tracer.start_as_current_span(name, context=parent, attributes=attributes) as current:
            ids = current.get_span_context()
            with bound(**{fields.TRACE_ID: f"{ids.trace_id:032x}", fields.SPAN_ID: f"{ids.span_id:016x}"}):
                yield RecordedSpan(current)

    def close(self) -> None:
        """Export the pending spans, and stop."""
        self._provider.shutdown()


class RecordedSpan:
    """A span that is exported when its block ends."""

    __slots__ = ("_span", "traceparent")

    def __init__(self, span: OpenTelemetrySpan) -> None:
        self._span = span
        carrier: dict[str, str] = {}
        _trace_context.inject(carrier, set_span_in_context(span))
        self.traceparent = carrier[_HEADER]

    def set(self, key: str, value: AttributeValue) -> None:
        """Set an attribute."""
        self._span.set_attribute(key, value)

    def event(self, name: str) -> None:
        """Record that something happens now."""
        self._span.add_event(name)

    def fail(self, message: str) -> None:
        """Mark the work as failed, with the reason."""
        self._span.set_status(StatusCode.ERROR, message)
