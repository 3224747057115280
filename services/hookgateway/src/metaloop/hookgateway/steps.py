"""Records the steps of one call for metrics and spans: name resolution, connect, TLS, first byte, body."""

from contextvars import ContextVar
from dataclasses import dataclass, field

from metaloop.common.machine import monotonic
from metaloop.common.telemetry.spans import Span

LIMITER_PASSED = "connect_limiter_passed"
"""Only if the call had to wait for the connect limiter."""

DNS_START = "dns_start"
DNS_DONE = "dns_done"
CONNECT_START = "connect_start"
CONNECT_DONE = "connect_done"
TLS_START = "tls_handshake_start"
TLS_DONE = "tls_handshake_done"
FIRST_BYTE = "first_byte"
BODY_DONE = "body_done"


@dataclass(slots=True)
class Steps:
    """The steps of one call so far, in order, each with the seconds since the call began."""

    span: Span
    began_at: float = field(default_factory=monotonic)
    marks: list[tuple[str, float]] = field(default_factory=list)

    def mark(self, step: str) -> None:
        """Record that this step happens now."""
        self.marks.append((step, monotonic() - self.began_at))
        self.span.event(step)

    def elapsed(self) -> float:
        """Seconds since the call began."""
        return monotonic() - self.began_at

    @property
    def last(self) -> str:
        """The latest step, or an empty string before the first."""
        return self.marks[-1][0] if self.marks else ""

    @property
    def shows_stale_connection(self) -> bool:
        """Whether the request was sent on an idle connection of the pool and nothing came back on it."""
        return self.last in {"", LIMITER_PASSED}


current_steps: ContextVar[Steps] = ContextVar("current_steps")
"""The steps of the call that this task is making. aiohttp's connector, which does not know calls, records them here."""
