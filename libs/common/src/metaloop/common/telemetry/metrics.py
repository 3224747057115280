"""Metrics in one registry, and their text form for Prometheus.

A metric is defined at module level, in the module that updates it, or as a `Family` whose numbers are read when
Prometheus scrapes them. Names that controller authors know from elsewhere (`workqueue_*`, `controller_runtime_*`,
`rest_client_*`) are used as they are; any other name begins with `metaloop_`. A name contains its unit.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, Counter, Gauge, Histogram, Metric, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from metaloop.common.distribution import SECONDS, Distribution

# `_created` samples double the output, and Prometheus ignores them by default.
disable_created_metrics()

registry = REGISTRY
"""All metrics of this process, including those about the process itself."""
CONTENT_TYPE = CONTENT_TYPE_LATEST

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
LabelValues: TypeAlias = tuple[str, ...]
Numbers: TypeAlias = Mapping[LabelValues, float | Distribution]
"""The number of each time series of a family, by the values of its labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One metric: what is documented of it, and what a dashboard may ask for."""

    name: str
    """As Prometheus shows it; that of a counter ends with `_total`."""
    kind: Kind
    documentation: str
    labels: tuple[str, ...] = ()

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its time series."""
        return tuple(self.name + suffix for suffix in ("_bucket", "_sum", "_count")) if self.kind == "histogram" else (self.name,)


_families: dict[str, Family] = {}
"""Every family that this process has defined so far."""
_observed: "dict[str, _Observed]" = {}
"""A process may build its service more than once: in tests."""


def families() -> list[Family]:
    """Every family that this process has defined so far, by name."""
    return sorted(_families.values(), key=lambda family: family.name)


def counter(name: str, documentation: str, labels: Sequence[str] = ()) -> Counter:
    """A new counter; its name in Prometheus is `<name>_total`."""
    _define(Family(name=f"{name}_total", kind="counter", documentation=documentation, labels=tuple(labels)))
    return Counter(name, documentation, labels, registry=registry)


def gauge(name: str, documentation: str, labels: Sequence[str] = ()) -> Gauge:
    """A new gauge."""
    _define(Family(name=name, kind="gauge", documentation=documentation, labels=tuple(labels)))
    return Gauge(name, documentation, labels, registry=registry)


def histogram(name: str, documentation: str, labels: Sequence[str] = (), *, buckets: Sequence[float] = SECONDS) -> Histogram:
    """A new histogram; its default buckets are for seconds."""
    _define(Family(name=name, kind="histogram", documentation=documentation, labels=tuple(labels)))
    return Histogram(name, documentation, labels, buckets=buckets, registry=registry)


def export(family: Family, read: Callable[[], Numbers]) -> None:
    """Have `read` return the family's numbers at each scrape, instead of any former `read`.

    What `read` no longer returns is no longer exposed.
    """
    found = _observed.get(family.name)
    if found is None:
        _define(family)
        found = _observed[family.name] = _Observed(family, read)
        registry.register(found)
    found.read = read


def observed(name: str, documentation: str, read: Callable[[], float]) -> None:
    """A gauge whose value `read` returns when Prometheus scrapes it, from now on instead of any former `read`."""
    export(Family(name=name, kind="gauge", documentation=documentation), lambda: {(): read()})


def observed_by(name: str, documentation: str, label: str, read: Callable[[], Mapping[str, float]]) -> None:
    """A gauge with a label, whose numbers by label value `read` returns at each scrape from now on."""
    family = Family(name=name, kind="gauge", documentation=documentation, labels=(label,))
    export(family, lambda: {(value,): number for value, number in read().items()})


def build_info(service: str, version: str) -> None:
    """From now on `metaloop_build_info` tells that this process is that service, in that version."""
    _build_info.labels(service, version).set(1)


def exposition() -> bytes:
    """The current values of all metrics in Prometheus' text format."""
    return generate_latest(registry)


class _Observed(Collector):
    """A family whose numbers are read when Prometheus scrapes them."""

    def __init__(self, family: Family, read: Callable[[], Numbers]) -> None:
        self.read = read
        self._family = family

    def describe(self) -> Iterable[Metric]:
        """The family without numbers: nothing is read before the service is built."""
        yield _metric_of(self._family, {})

    def collect(self) -> Iterator[Metric]:
        """The numbers as they are now."""
        yield _metric_of(self._family, self.read())


def _metric_of(family: Family, numbers: Numbers) -> Metric:
    if family.kind == "histogram":
        histogram_family = HistogramMetricFamily(family.name, family.documentation, labels=family.labels)
        for values, number in numbers.items():
            if isinstance(number, Distribution):
                buckets = [(floatToGoString(bound), count) for bound, count in number.cumulative()]
                histogram_family.add_metric(values, buckets=buckets, sum_value=number.sum)
        return histogram_family
    family_of = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = family_of(family.name, family.documentation, labels=family.labels)
    for values, number in numbers.items():
        if not isinstance(number, Distribution):
            metric.add_metric(values, number)
    return metric


def _define(family: Family) -> None:
    _families[family.name] = family


_build_info = gauge("metaloop_build_info", "Always 1; its labels say what runs.", ("service", "version"))
