"""Spans recorded with OpenTelemetry and sent to an OTLP collector; imported only where tracing is on."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags, set_span_in_context
from opentelemetry.trace import Span as OpenTelemetrySpan

from metaloop.common.telemetry import fields
from metaloop.common.telemetry.logs import bound
from metaloop.common.telemetry.traces import Attributes, AttributeValue

_PATH = "/v1/traces"


class OtlpRecorder:
    """Sends spans in batches, from a thread of its own."""

    def __init__(self, service: str, endpoint: str) -> None:
        url = endpoint if endpoint.endswith(_PATH) else endpoint.rstrip("/") + _PATH
        self._provider = TracerProvider(resource=Resource.create({"service.name": f"metaloop-{service}"}), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=url)))
        self._tracer = self._provider.get_tracer("metaloop")

    @contextmanager
    def span(self, name: str, *, traceparent: str, attributes: Attributes) -> Iterator["RecordedSpan"]:
        """A block as a span below `traceparent`, or below the span around it; its log lines carry the span's ids."""
        parent = parse_traceparent(traceparent)
        context = set_span_in_context(NonRecordingSpan(parent)) if parent else None
        with self._tracer.start_as_current_span(name, context=context, attributes=attributes) as current:
            ids = current.get_span_context()
            with bound(**{fields.TRACE_ID: f"{ids.trace_id:032x}", fields.SPAN_ID: f"{ids.span_id:016x}"}):
                yield RecordedSpan(current)

    def close(self) -> None:
        """Send what is waiting, and stop."""
        self._provider.shutdown()


class RecordedSpan:
    """A span that is sent to the collector when its block is over."""

    __slots__ = ("_span", "traceparent")

    def __init__(self, span: OpenTelemetrySpan) -> None:
        self._span = span
        self.traceparent = format_traceparent(span.get_span_context())

    def set(self, key: str, value: AttributeValue) -> None:
        """Note an attribute."""
        self._span.set_attribute(key, value)

    def event(self, name: str) -> None:
        """Note that something is happening now."""
        self._span.add_event(name)

    def fail(self, message: str) -> None:
        """Note that the work came to nothing, and why."""
        self._span.set_status(StatusCode.ERROR, message)


def format_traceparent(context: SpanContext) -> str:
    """The W3C `traceparent` of a span."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def parse_traceparent(traceparent: str) -> SpanContext | None:
    """The span that a W3C `traceparent` names; None for what is none: the standard asks to begin a new trace then."""
    parts = traceparent.split("-")
    if [len(part) for part in parts[:4]] != [2, 32, 16, 2]:
        return None
    try:
        trace_id, span_id, flags = (int(part, 16) for part in parts[1:4])
    except ValueError:
        return None
    context = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))
    return context if context.is_valid else None
