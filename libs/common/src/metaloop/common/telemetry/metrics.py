"""Metrics in one registry, and their text form for Prometheus.

A metric is defined at module level, in the module that updates it. Its name begins with `metaloop_` and contains its
unit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, Counter, Gauge, Histogram, Metric, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

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
_observed_by: "dict[str, _ObservedByLabel]" = {}
"""The same for those with a label."""


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


class _ObservedByLabel(Collector):
    """A gauge with one label, whose label values and numbers are read when Prometheus scrapes them."""

    def __init__(self, name: str, documentation: str, label: str) -> None:
        self.read: Callable[[], Mapping[str, float]] = dict
        self._name, self._documentation, self._label = name, documentation, label

    def collect(self) -> Iterator[Metric]:
        """The numbers as they are now."""
        family = GaugeMetricFamily(self._name, self._documentation, labels=[self._label])
        for value, number in self.read().items():
            family.add_metric([value], number)
        yield family


def observed_by(name: str, documentation: str, label: str, read: Callable[[], Mapping[str, float]]) -> None:
    """A gauge with a label, whose numbers by label value `read` returns at each scrape, instead of any former `read`.

    What `read` no longer returns is no longer exposed.
    """
    found = _observed_by.get(name)
    if found is None:
        found = _observed_by[name] = _ObservedByLabel(name, documentation, label)
        registry.register(found)
    found.read = read


def histogram(name: str, documentation: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = SECONDS) -> Histogram:
    """A new histogram; its default buckets are for seconds."""
    return Histogram(name, documentation, labels, buckets=buckets, registry=registry)


def exposition() -> bytes:
    """The current values of all metrics in Prometheus' text format."""
    return generate_latest(registry)
