"""Exports metrics: the hook metrics of Metacontroller, the verdicts, and the state of circuits."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from prometheus_client import Counter

from metaloop.common.machine import monotonic
from metaloop.common.telemetry import metrics
from metaloop.hookgateway import steps
from metaloop.hookgateway.core.target import HOOKS, Target
from metaloop.hookgateway.steps import Steps

HOOK_LABELS: Final[tuple[str, ...]] = ("url", "controller_name", "controller_type")
"""Metacontroller's labels. The URL is without its query, where people put tokens."""

METHOD: Final = "post"

_DURATION_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The defaults of Prometheus' Go client, which Metacontroller uses. The Python client has others."""
_DNS_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05)
_TLS_BUCKETS: Final = (0.05, 0.1, 0.25, 0.5)
_DNS_STEPS: Final = frozenset({steps.DNS_START, steps.DNS_DONE})
_TLS_STEPS: Final = frozenset({steps.TLS_START, steps.TLS_DONE})

_CAPITAL: Final = re.compile(r"[A-Z]")


def _snake_case(hook: str) -> str:
    """The name of a hook as names of metrics are written: `post_delete`."""
    return _CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", hook)


class HookMetrics:
    """The metrics of one kind of hook, with Metacontroller's names and labels."""

    def __init__(self, hook: str) -> None:
        name = f"metacontroller_{_snake_case(hook)}"
        self.requests = metrics.counter(f"{name}_requests", f"Answered {hook} requests.", (*HOOK_LABELS, "code", "method"))
        self.duration = metrics.histogram(
            f"{name}_request_duration_histogram_seconds",
            f"Time to answer of {hook} requests.",
            (*HOOK_LABELS, "method"),
            buckets=_DURATION_BUCKETS,
        )
        self.dns = metrics.histogram(
            f"{name}_dns_duration_histogram_seconds",
            f"When in a {hook} request its name resolved.",
            (*HOOK_LABELS, "event"),
            buckets=_DNS_BUCKETS,
        )
        self.tls = metrics.histogram(
            f"{name}_tls_duration_histogram_seconds",
            f"When in a {hook} request TLS was set up.",
            (*HOOK_LABELS, "event"),
            buckets=_TLS_BUCKETS,
        )
        self.in_flight = metrics.gauge(f"{name}_in_flight_requests", f"Unanswered {hook} requests.", HOOK_LABELS)


_HOOKS: Final = {hook: HookMetrics(hook) for hook in HOOKS}

_verdicts = metrics.counter(
    "metaloop_hookgateway_verdicts",
    "Calls by verdict; reason says why there was no answer.",
    ("hook", *HOOK_LABELS, "verdict", "reason"),
)
circuit = metrics.gauge("metaloop_hookgateway_circuit_state", "The endpoint's circuit: 0 closed, 1 half open, 2 open.", ("url",))


def export_connect_limits(read: Callable[[], Mapping[str, float]]) -> None:
    """Export the limits that `read` returns by URL."""
    documentation = "How many calls may wait for the endpoint to accept them; none where there is no such limit now."
    metrics.observed_by("metaloop_hookgateway_connect_limit", documentation, "url", read)


class Metrics:
    """The metrics of one gateway."""

    def __init__(self) -> None:
        self._series: dict[tuple[str, ...], Series] = {}

    def series_of(self, target: Target) -> "Series":
        """The time series of this target's hook."""
        labels = (target.hook, target.endpoint.label, target.controller.name, target.controller.kind)
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = Series(*labels)
        return series

    def forget_unused_since(self, moment: float) -> None:
        """Stop exporting the metrics of hooks that have not been called since then."""
        for labels in [labels for labels, series in self._series.items() if series.used_at < moment]:
            self._series.pop(labels).remove()


class Series:
    """The time series of one hook of one controller at one URL. Each is looked up by its labels only once."""

    def __init__(self, name: str, *labels: str) -> None:
        self.used_at = monotonic()
        self._name = name
        self._labels = labels
        self._hook = hook = _HOOKS[name]
        self._in_flight = hook.in_flight.labels(*labels)
        self._duration = hook.duration.labels(*labels, METHOD)
        self._by_code: dict[int, Counter] = {}
        self._by_verdict: dict[tuple[str, str], Counter] = {}

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """Count a request as in flight while this scope lasts."""
        self._in_flight.inc()
        try:
            yield
        finally:
            self._in_flight.dec()

    def count_answer(self, status: int, steps_of_call: Steps) -> None:
        """Count an answer. As in Metacontroller, a request without an answer is not counted."""
        requests = self._by_code.get(status)
        if requests is None:
            requests = self._by_code[status] = self._hook.requests.labels(*self._labels, str(status), METHOD)
        requests.inc()
        self._duration.observe(steps_of_call.elapsed())
        for step, seconds in steps_of_call.marks:
            if step in _DNS_STEPS:
                self._hook.dns.labels(*self._labels, step).observe(seconds)
            elif step in _TLS_STEPS:
                self._hook.tls.labels(*self._labels, step).observe(seconds)

    def count_verdict(self, verdict: str, reason: str) -> None:
        """Count a verdict."""
        self.used_at = monotonic()
        verdicts = self._by_verdict.get((verdict, reason))
        if verdicts is None:
            verdicts = self._by_verdict[verdict, reason] = _verdicts.labels(self._name, *self._labels, verdict, reason)
        verdicts.inc()

    def remove(self) -> None:
        """Remove every series with these labels from the registry."""
        hook = self._hook
        names: dict[str, str] = dict(zip(HOOK_LABELS, self._labels, strict=True))
        for metric in (hook.requests, hook.duration, hook.dns, hook.tls, hook.in_flight):
            metric.remove_by_labels(names)
        _verdicts.remove_by_labels({"hook": self._name, **names})
