"""The circuit breaker of one endpoint: whether a call may be sent now.

    Closed ──threshold failures in a row──▶ Open ──its time is over──▶ HalfOpen: one probe is sent, other calls wait
      ▲                                       ▲                            │
      │                                       └────the probe fails─────────┤  twice as long, up to the longest
      └──────────────────────the probe succeeds────────────────────────────┘

A failure is an endpoint that does not answer, or whose proxy says that it is not there. An answer, whatever it says, is
a success. A call that was sent before the circuit opened says nothing new when it ends: only the probe moves an open
circuit.
"""

from dataclasses import dataclass, field
from enum import IntEnum


class State(IntEnum):
    """The state of a circuit; the number is the metric's value."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """When a circuit opens, and for how long."""

    threshold: int = 5
    """Failures in a row that open it.

    One success resets the count, so a webhook that fails for some parents stays in use.
    """

    shortest_seconds: float = 1.0
    longest_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Permit:
    """Permission to send one call. Its result is reported to the breaker together with the permit."""

    epoch: int
    is_probe: bool


@dataclass(frozen=True, slots=True)
class Wait:
    """No permission: ask again after so many seconds."""

    seconds: float


@dataclass(slots=True)
class Breaker:
    """The circuit of one endpoint."""

    rules: Rules = field(default_factory=Rules)
    state: State = State.CLOSED
    failures: int = 0
    """In a row, in this epoch. Failures of calls from earlier epochs do not count."""

    _epoch: int = 0
    """Grows whenever the circuit opens or closes, which tells calls that began before from those after."""

    _open_seconds: float = 0.0
    _open_until: float = 0.0
    _is_probing: bool = False
    """Whether a probe is in flight: at most one, and only while half open."""

    def request(self, *, now: float) -> Permit | Wait:
        """A permit, or how long to wait. Each permit must come back by `succeeded`, `failed` or `abandoned`."""
        if self.state is State.CLOSED:
            return Permit(self._epoch, is_probe=False)
        if now < self._open_until:
            return Wait(self._open_until - now)
        if self._is_probing:
            # Nobody knows how long the probe takes. If it fails, the circuit opens for at least this long again.
            return Wait(self._open_seconds)
        self.state, self._is_probing = State.HALF_OPEN, True
        return Permit(self._epoch, is_probe=True)

    def succeeded(self, permit: Permit) -> None:
        """Note that the endpoint answered this call."""
        if permit.epoch != self._epoch or (self.state is not State.CLOSED and not permit.is_probe):
            return
        if permit.is_probe:
            self._epoch += 1
        self.state, self.failures, self._open_seconds, self._is_probing = State.CLOSED, 0, 0.0, False

    def failed(self, permit: Permit, *, now: float) -> None:
        """Note that the endpoint did not answer this call."""
        if permit.epoch != self._epoch:
            return
        self.failures += 1
        if permit.is_probe or self.failures >= self.rules.threshold:
            self._open(now=now)

    def abandoned(self, permit: Permit) -> None:
        """Note that this call was cancelled, so that its result is unknown.

        If it was the probe, the next call is one.
        """
        if permit.is_probe and permit.epoch == self._epoch:
            self._is_probing = False

    def _open(self, *, now: float) -> None:
        rules = self.rules
        self._open_seconds = min(max(2 * self._open_seconds, rules.shortest_seconds), rules.longest_seconds)
        self.state, self._open_until, self._is_probing, self.failures = State.OPEN, now + self._open_seconds, False, 0
        self._epoch += 1
