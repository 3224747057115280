"""Circuit breaker and bulkhead: whether a call may go out now.

    Closed ──threshold failures in a row──▶ Open ──its time is over──▶ HalfOpen: one probe, everyone else waits
      ▲                                       ▲                            │
      │                                       └────the probe fails─────────┤  twice as long, up to the longest
      └──────────────────────the probe succeeds────────────────────────────┘

A failure is an endpoint that does not answer, or whose front says that it is not there. An answer, whatever it says, is a success.
Calls that went out before the circuit opened say nothing new when they end: only the probe moves an open circuit.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final


class State(IntEnum):
    """What the circuit is doing; the number is the metric's value."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """When a circuit opens, and for how long."""

    threshold: int = 5
    """Failures in a row that open it. One success starts the count again, so a webhook that fails for some parents only stays in use."""

    shortest_seconds: float = 1.0
    longest_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to send one call; how it went is told to the breaker with it."""

    era: int
    is_probe: bool


@dataclass(frozen=True, slots=True)
class Wait:
    """No call now; ask again after so many seconds."""

    seconds: float


@dataclass(slots=True)
class Breaker:
    """The circuit of one endpoint."""

    rules: Rules = field(default_factory=Rules)
    state: State = State.CLOSED
    failures: int = 0
    """In a row, of this era; what is left over from an earlier one does not count."""

    _era: int = 0
    """Grows whenever the circuit opens or closes, so that calls which started before can be told apart."""

    _open_seconds: float = 0.0
    _open_until: float = 0.0
    _probing: bool = False
    """At most one call is out as a probe, and only while half open."""

    def ask(self, *, now: float) -> Permit | Wait:
        """Leave to send a call, or how long to wait. Each Permit must come back by `succeeded`, `failed` or `abandoned`."""
        if self.state is State.CLOSED:
            return Permit(self._era, is_probe=False)
        if now < self._open_until:
            return Wait(self._open_until - now)
        if self._probing:
            # Nobody knows for how long: as long as a probe that hangs, and then the next time that the circuit is open.
            return Wait(self._open_seconds)
        self.state, self._probing = State.HALF_OPEN, True
        return Permit(self._era, is_probe=True)

    def succeeded(self, permit: Permit) -> None:
        """The endpoint answered this call."""
        if permit.era != self._era or (self.state is not State.CLOSED and not permit.is_probe):
            return
        if permit.is_probe:
            self._era += 1
        self.state, self.failures, self._open_seconds, self._probing = State.CLOSED, 0, 0.0, False

    def failed(self, permit: Permit, *, now: float) -> None:
        """The endpoint did not answer this call."""
        if permit.era != self._era:
            return
        self.failures += 1
        if permit.is_probe or self.failures >= self.rules.threshold:
            self._open(now=now)

    def abandoned(self, permit: Permit) -> None:
        """Nobody knows how this call would have ended: its caller went away. A probe leaves its place to the next call."""
        if permit.is_probe and permit.era == self._era:
            self._probing = False

    def _open(self, *, now: float) -> None:
        rules = self.rules
        self._open_seconds = min(max(2 * self._open_seconds, rules.shortest_seconds), rules.longest_seconds)
        self.state, self._open_until, self._probing, self.failures = State.OPEN, now + self._open_seconds, False, 0
        self._era += 1


@dataclass(slots=True)
class Bulkhead:
    """How many calls one controller may have in flight: whatever its webhooks do, the others keep their share of the gateway."""

    limit: int
    in_flight: int = 0

    def enter(self) -> bool:
        """Take a place if there is one; then `leave` must follow."""
        if self.in_flight >= self.limit:
            return False
        self.in_flight += 1
        return True

    def leave(self) -> None:
        """Give the place back."""
        self.in_flight -= 1


RETRY_SHARE: Final = 0.1
RETRY_RESERVE: Final = 10.0


@dataclass(slots=True)
class RetryBudget:
    """How many calls may be sent a second time: a tenth of all, with a small reserve. So retries never double the load of a failing endpoint."""

    balance: float = RETRY_RESERVE

    def earn(self) -> None:
        """A call went out for the first time."""
        self.balance = min(self.balance + RETRY_SHARE, RETRY_RESERVE)

    def spend(self) -> bool:
        """Pay for sending a call again, if the balance allows."""
        if self.balance < 1:
            return False
        self.balance -= 1
        return True


@dataclass(slots=True)
class ByteBudget:
    """How many bytes of unfinished answers may be in memory: hundreds of webhooks that each send the largest answer must not end the process."""

    limit: int
    held: int = 0

    def take(self, size: int) -> bool:
        """Hold so many bytes more if there is room; then `give_back` must follow."""
        if self.held + size > self.limit:
            return False
        self.held += size
        return True

    def give_back(self, size: int) -> None:
        """Hold so many bytes less."""
        self.held -= size
