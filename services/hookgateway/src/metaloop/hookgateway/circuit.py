"""Lets calls through to one endpoint or holds them back, and makes known when that changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import uniform
from time import monotonic
from typing import Final

from metaloop.common.telemetry import fields, get_logger
from metaloop.hookgateway import metrics
from metaloop.hookgateway.core.breaker import Breaker, Permit, Rules, Wait
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.core.verdict import is_sign_of_life
from metaloop.hookgateway.errors import CircuitOpen, EndpointDown

SPREAD: Final = 1.3
"""So much longer than asked do some wait: else all parents of a webhook that is down would come back in the same moment, again and again."""

log = get_logger()


@dataclass(slots=True)
class Passage:
    """One call's way through the circuit."""

    is_up: bool | None = None
    """Whether the endpoint answered; None while nobody knows, and for ever if the call is abandoned."""

    trouble: str = ""
    """What happened instead, in words that hold nothing of the call."""

    def answered(self, status: int) -> None:
        """Note with which status it did."""
        self.is_up = is_sign_of_life(status)
        self.trouble = "" if self.is_up else f"status {status}"

    def failed(self, error: EndpointDown) -> None:
        """Note that it did not."""
        self.is_up, self.trouble = False, error.fault.reason


class Circuit:
    """An endpoint's circuit breaker, with its state in the log and the metrics."""

    def __init__(self, endpoint: Endpoint, rules: Rules) -> None:
        self._endpoint = endpoint
        self._breaker = Breaker(rules)
        self._last_trouble = ""
        metrics.circuit.labels(endpoint.label).set(self._breaker.state)

    @contextmanager
    def passage(self) -> Iterator[Passage]:
        """A block that makes one call; raises CircuitOpen instead of entering it while the endpoint is left in peace."""
        passage, permit = Passage(), self._permit()
        try:
            yield passage
        except EndpointDown as error:
            passage.failed(error)
            raise
        finally:
            self._tell(permit, passage)

    def forget(self) -> None:
        """Take the circuit out of the metrics."""
        metrics.circuit.remove_by_labels({"url": self._endpoint.label})

    def _permit(self) -> Permit:
        with self._made_known():
            permit = self._breaker.ask(now=monotonic())
        if isinstance(permit, Wait):
            trouble = f"{self._endpoint.address} did not answer the last calls ({self._last_trouble})"
            raise CircuitOpen(f"circuit open: {trouble}", after_seconds=permit.seconds * uniform(1, SPREAD))  # noqa: S311 - no secret
        return permit

    def _tell(self, permit: Permit, passage: Passage) -> None:
        with self._made_known():
            match passage.is_up:
                case True:
                    self._breaker.succeeded(permit)
                case False:
                    self._last_trouble = passage.trouble
                    self._breaker.failed(permit, now=monotonic())
                case None:
                    self._breaker.abandoned(permit)

    @contextmanager
    def _made_known(self) -> Iterator[None]:
        before = self._breaker.state
        yield
        state = self._breaker.state
        if state is not before:
            metrics.circuit.labels(self._endpoint.label).set(state)
            log.warning("circuit.changed", **{fields.ENDPOINT: self._endpoint.label, "before": before.name, "now": state.name})
