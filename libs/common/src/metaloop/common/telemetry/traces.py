"""Traces: spans with W3C trace context. They cost next to nothing while no collector is configured.

With tracing off, a span passes on the `traceparent` that it was given: a trace continues across Metaloop even where
Metaloop records nothing.
"""

import os
import threading
from contextlib import AbstractContextManager

from metaloop.common.telemetry.exporting import resource_attributes, traces_url
from metaloop.common.telemetry.spans import Attributes, Recorder, SilentSpan, Span

_FLUSH_SECONDS = 2.0


class _Tracing:
    """The recorder of this process, if tracing is on."""

    recorder: Recorder | None = None


def configure_tracing(service: str, endpoint: str) -> None:
    """From now on export spans to the OTLP/HTTP collector at `endpoint`, or at that of the OTEL_* variables, if any."""
    if url := traces_url(endpoint, os.environ):
        # The SDK takes a third of a second and 20 MB to import: only a process that traces pays for it.
        from metaloop.common.telemetry.otlp import OtlpRecorder  # noqa: PLC0415

        _Tracing.recorder = OtlpRecorder(url, resource_attributes(service, os.environ))


def flush_traces() -> None:
    """Export the pending spans.

    Waits two seconds at most: an unreachable collector must not delay the end of the process.
    """
    if recorder := _Tracing.recorder:
        closing = threading.Thread(target=recorder.close, daemon=True)
        closing.start()
        closing.join(_FLUSH_SECONDS)


def trace_id_in(traceparent: str) -> str:
    """The id of the trace that a `traceparent` belongs to; empty for an empty one."""
    return traceparent.split("-")[1] if traceparent else ""


def span(name: str, *, traceparent: str = "", attributes: Attributes | None = None) -> AbstractContextManager[Span]:
    """A block as a span: a child of `traceparent` if one is given, else of the enclosing span, if any."""
    recorder = _Tracing.recorder
    return recorder.span(name, traceparent=traceparent, attributes=attributes or {}) if recorder else SilentSpan(traceparent)
