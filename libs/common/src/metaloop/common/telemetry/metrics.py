"""Metrics in one registry, and their text form for Prometheus.

A metric is defined at module level, in the module that updates it. Its name begins with `metaloop_` and contains its
unit.
"""

from collections.abc import Callable, Sequence

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

# `_created` samples double the output, and Prometheus ignores them by default.
disable_created_metrics()

registry = REGISTRY
"""All metrics of this process, including those about the process itself."""
CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Buckets from a request on loopback to the longest timeout."""
_build_info = Gauge("metaloop_build_info", "Always 1; its labels say what runs.", ("service", "version"), registry=registry)
_observed: dict[str, Gauge] = {}
"""A process may build its service more than once: in tests."""


def counter(name: str, documentation: str, labels: Sequence[str] = ()) -> Counter:
    """A new counter; its name in Prometheus is `<name>_total`."""
    return Counter(name, documentation, labels, registry=registry)


def gauge(name: str, documentation: str, labels: Sequence[str] = ()) -> Gauge:
    """A new gauge."""
    return Gauge(name, documentation, labels, registry=registry)


def observed(name: str, documentation: str, read: Callable[[], float]) -> None:
    """A gauge whose value `read` returns when Prometheus scrapes it, from now on instead of any former `read`."""
    found = _observed.get(name)
    if found is None:
        found = _observed[name] = Gauge(name, documentation, registry=registry)
    found.set_function(read)


def build_info(service: str, version: str) -> None:
    """From now on `metaloop_build_info` tells that this process is that service, in that version."""
    _build_info.labels(service, version).set(1)


def histogram(name: str, documentation: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = SECONDS) -> Histogram:
    """A new histogram; its default buckets are for seconds."""
    return Histogram(name, documentation, labels, buckets=buckets, registry=registry)


def exposition() -> bytes:
    """The current values of all metrics in Prometheus' text format."""
    return generate_latest(registry)
