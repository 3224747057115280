"""Applies the circuit breaker of one endpoint to its calls, and shows its state in the log and the metrics."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from metaloop.common.machine import monotonic, randomness
from metaloop.common.telemetry import fields, get_logger
from metaloop.hookgateway import metrics
from metaloop.hookgateway.core.breaker import Breaker, Permit, Rules, Wait
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.core.verdict import counts_as_up
from metaloop.hookgateway.errors import CircuitOpen, EndpointDown

MAX_JITTER: Final = 1.3
"""By up to this factor calls wait longer than the breaker asks.

Otherwise all parents of a webhook that is down return at once, again and again.
"""

log = get_logger()


@dataclass(slots=True)
class Attempt:
    """One call under the circuit breaker."""

    is_up: bool | None = None
    """Whether the endpoint answered. None until that is known, which it never is if the call is cancelled."""

    problem: str = ""
    """What happened instead of an answer, in words that hold nothing of the call."""

    def answered(self, status: int) -> None:
        """Note the status of the answer."""
        self.is_up = counts_as_up(status)
        self.problem = "" if self.is_up else f"status {status}"

    def failed(self, error: EndpointDown) -> None:
        """Note that there was no answer."""
        self.is_up, self.problem = False, error.fault.reason


class Circuit:
    """An endpoint's circuit breaker, with its state in the log and the metrics."""

    def __init__(self, endpoint: Endpoint, rules: Rules) -> None:
        self._endpoint = endpoint
        self._breaker = Breaker(rules)
        self._last_problem = ""
        metrics.circuit.labels(endpoint.label).set(self._breaker.state)

    @contextmanager
    def attempt(self) -> Iterator[Attempt]:
        """A block that makes one call. Raises CircuitOpen instead of entering it while the circuit is open."""
        attempt, permit = Attempt(), self._permit()
        try:
            yield attempt
        except EndpointDown as error:
            attempt.failed(error)
            raise
        finally:
            self._report(permit, attempt)

    def remove_metrics(self) -> None:
        """Take the circuit out of the metrics."""
        metrics.circuit.remove_by_labels({"url": self._endpoint.label})

    def _permit(self) -> Permit:
        with self._showing_changes():
            permit = self._breaker.request(now=monotonic())
        if isinstance(permit, Wait):
            problem = f"{self._endpoint.address} did not answer the last calls ({self._last_problem})"
            raise CircuitOpen(f"circuit open: {problem}", after_seconds=permit.seconds * randomness().uniform(1, MAX_JITTER))
        return permit

    def _report(self, permit: Permit, attempt: Attempt) -> None:
        with self._showing_changes():
            match attempt.is_up:
                case True:
                    self._breaker.succeeded(permit)
                case False:
                    self._last_problem = attempt.problem
                    self._breaker.failed(permit, now=monotonic())
                case None:
                    self._breaker.abandoned(permit)

    @contextmanager
    def _showing_changes(self) -> Iterator[None]:
        """A block after which a change of the circuit's state is logged and in the metrics."""
        before = self._breaker.state
        yield
        state = self._breaker.state
        if state is not before:
            metrics.circuit.labels(self._endpoint.label).set(state)
            log.warning("circuit.changed", **{fields.ENDPOINT: self._endpoint.label, fields.BEFORE: before.name, fields.NOW: state.name})
