"""Traces: W3C trace context and spans, which cost next to nothing while no collector is configured.

A span made with tracing off hands on the `traceparent` that it was given, so that a trace goes through us even where we add nothing to it.
"""

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

AttributeValue: TypeAlias = str | float | bool
Attributes: TypeAlias = Mapping[str, AttributeValue]

_FLUSH_SECONDS = 2.0


class Span(Protocol):
    """A piece of work within a trace."""

    @property
    def traceparent(self) -> str:
        """What to hand on to those who work for us; empty if there is no trace."""
        ...

    def set(self, key: str, value: AttributeValue) -> None:
        """Note an attribute."""
        ...

    def event(self, name: str) -> None:
        """Note that something is happening now."""
        ...

    def fail(self, message: str) -> None:
        """Note that the work came to nothing, and why."""
        ...


class Recorder(Protocol):
    """Makes spans and sends them away."""

    def span(self, name: str, *, traceparent: str, attributes: Attributes) -> AbstractContextManager[Span]:
        """A block as a span below `traceparent`, or below the span around it if that is empty."""
        ...

    def close(self) -> None:
        """Send what is waiting, however long it takes."""
        ...


class SilentSpan:
    """A span while tracing is off, and its own context manager."""

    __slots__ = ("traceparent",)

    def __init__(self, traceparent: str = "") -> None:
        self.traceparent = traceparent

    def set(self, key: str, value: AttributeValue) -> None:
        """Nothing is noted."""

    def event(self, name: str) -> None:
        """Nothing is noted."""

    def fail(self, message: str) -> None:
        """Nothing is noted."""

    def __enter__(self) -> Span:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class _Tracing:
    """Where spans of this process go."""

    recorder: Recorder | None = None


def configure_tracing(service: str, endpoint: str) -> None:
    """From here on spans go to the OTLP/HTTP collector at `endpoint` (such as `http://jaeger:4318`); with an empty one, nowhere."""
    if endpoint:
        # A third of a second and 20 MB, which only those pay who trace.
        from metaloop.common.telemetry.otlp import OtlpRecorder  # noqa: PLC0415

        _Tracing.recorder = OtlpRecorder(service, endpoint)


def flush_traces() -> None:
    """Send what is waiting, for no longer than two seconds: a collector that is away must not keep us."""
    if recorder := _Tracing.recorder:
        closing = threading.Thread(target=recorder.close, daemon=True)
        closing.start()
        closing.join(_FLUSH_SECONDS)


def span(name: str, *, traceparent: str = "", attributes: Attributes | None = None) -> AbstractContextManager[Span]:
    """A block as a span: below `traceparent` if one is given, else below the span of the block around it, if any."""
    recorder = _Tracing.recorder
    return recorder.span(name, traceparent=traceparent, attributes=attributes or {}) if recorder else SilentSpan(traceparent)
