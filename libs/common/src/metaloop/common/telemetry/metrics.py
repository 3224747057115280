"""Metrics, all in one registry, and their text form for Prometheus.

A metric is made where it is counted, at module level; its name begins with `metaloop_`, and its unit stands in its name.
"""

from collections.abc import Callable, Sequence

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

# A second sample beside each counter and histogram, for a use that Prometheus itself has by default switched off.
disable_created_metrics()

registry = REGISTRY
"""Holds all metrics of this process, those about the process itself among them."""
CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""From a request on loopback to the longest that we wait for one."""


def counter(name: str, documentation: str, labels: Sequence[str] = ()) -> Counter:
    """A new counter; Prometheus sees it as `<name>_total`."""
    return Counter(name, documentation, labels, registry=registry)


def gauge(name: str, documentation: str, labels: Sequence[str] = ()) -> Gauge:
    """A new gauge."""
    return Gauge(name, documentation, labels, registry=registry)


def observed(name: str, documentation: str, read: Callable[[], float]) -> None:
    """A new gauge whose value is read when Prometheus asks: for what something else counts already."""
    Gauge(name, documentation, registry=registry).set_function(read)


def histogram(name: str, documentation: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = SECONDS) -> Histogram:
    """A new histogram, of seconds unless its buckets say otherwise."""
    return Histogram(name, documentation, labels, buckets=buckets, registry=registry)


def exposition() -> bytes:
    """All metrics as they are now, in Prometheus' text format."""
    return generate_latest(registry)
