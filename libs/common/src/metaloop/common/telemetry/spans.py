"""What a span is to the code that works within it, and what records spans."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

AttributeValue: TypeAlias = str | float | bool
Attributes: TypeAlias = Mapping[str, AttributeValue]


class Span(Protocol):
    """One unit of work within a trace."""

    @property
    def traceparent(self) -> str:
        """The W3C `traceparent` of this span, for requests that are part of it; empty if there is no trace."""
        ...

    def set(self, key: str, value: AttributeValue) -> None:
        """Set an attribute."""
        ...

    def event(self, name: str) -> None:
        """Record that something happens now."""
        ...

    def fail(self, message: str) -> None:
        """Mark the work as failed, with the reason."""
        ...


class Recorder(Protocol):
    """Creates spans and exports them."""

    def span(self, name: str, *, traceparent: str, attributes: Attributes) -> AbstractContextManager[Span]:
        """A block as a child span of `traceparent`, or of the enclosing span if that is empty."""
        ...

    def close(self) -> None:
        """Export the pending spans, however long it takes."""
        ...


class SilentSpan:
    """A span that records nothing, and its own context manager."""

    __slots__ = ("traceparent",)

    def __init__(self, traceparent: str = "") -> None:
        self.traceparent = traceparent

    def set(self, key: str, value: AttributeValue) -> None:
        """Do nothing."""

    def event(self, name: str) -> None:
        """Do nothing."""

    def fail(self, message: str) -> None:
        """Do nothing."""

    def __enter__(self) -> Span:
        return self

    def __exit__(self, *_: object) -> None:
        return None
