"""Metrics whose values are read when they are scraped, and the list of all that a process exports."""

from metaloop.common.distribution import Distribution
from metaloop.common.telemetry import metrics
from metaloop.common.telemetry.metrics import Family


def samples(name: str) -> list[str]:
    """The exposed samples of a metric."""
    return [line for line in metrics.exposition().decode().splitlines() if line.startswith(name)]


def test_numbers_by_label_are_those_at_the_time_of_the_scrape():
    numbers = {"a": 1.0, "b": 2.0}
    metrics.observed_by("metaloop_test_kept", "For a test.", "name", lambda: numbers)
    before = samples("metaloop_test_kept")

    del numbers["a"]
    numbers["b"] = 3.0

    assert before == ['metaloop_test_kept{name="a"} 1.0', 'metaloop_test_kept{name="b"} 2.0']
    assert samples("metaloop_test_kept") == ['metaloop_test_kept{name="b"} 3.0']


def test_second_service_of_a_process_is_read_instead_of_the_first():
    for number in (1.0, 2.0):
        metrics.observed_by("metaloop_test_replaced", "For a test.", "name", lambda number=number: {"x": number})

    assert samples("metaloop_test_replaced") == ['metaloop_test_replaced{name="x"} 2.0']


def test_label_values_are_escaped():
    metrics.observed_by("metaloop_test_escaped", "For a test.", "name", lambda: {'a"b': 1.0})

    assert samples("metaloop_test_escaped") == ['metaloop_test_escaped{name="a\\"b"} 1.0']


def test_gauge_without_labels_is_one_number():
    metrics.observed("metaloop_test_alone", "For a test.", lambda: 7.0)

    assert samples("metaloop_test_alone") == ["metaloop_test_alone 7.0"]


def test_count_that_is_read_at_the_scrape_is_a_counter():
    metrics.export(Family(name="metaloop_test_read_total", kind="counter", documentation="For a test.", labels=("a",)), lambda: {("x",): 2})

    assert samples("metaloop_test_read") == ['metaloop_test_read_total{a="x"} 2.0']
    assert samples("# TYPE metaloop_test_read") == ["# TYPE metaloop_test_read_total counter"]


def test_distribution_is_exposed_as_a_histogram():
    seen = Distribution((0.1, 1.0))
    for value in (0.05, 0.5, 5.0):
        seen.observe(value)
    metrics.export(Family(name="metaloop_test_seconds", kind="histogram", documentation="For a test."), lambda: {(): seen})

    assert samples("metaloop_test_seconds") == [
        'metaloop_test_seconds_bucket{le="0.1"} 1.0',
        'metaloop_test_seconds_bucket{le="1.0"} 2.0',
        'metaloop_test_seconds_bucket{le="+Inf"} 3.0',
        "metaloop_test_seconds_count 3.0",
        "metaloop_test_seconds_sum 5.55",
    ]


def test_every_way_to_define_a_metric_puts_it_on_the_list():
    metrics.counter("metaloop_test_listed", "A.", ("a",))
    metrics.histogram("metaloop_test_listed_seconds", "B.")
    metrics.observed_by("metaloop_test_listed_now", "C.", "c", dict)

    listed = [family for family in metrics.families() if family.name.startswith("metaloop_test_listed")]

    assert listed == [
        Family(name="metaloop_test_listed_now", kind="gauge", documentation="C.", labels=("c",)),
        Family(name="metaloop_test_listed_seconds", kind="histogram", documentation="B."),
        Family(name="metaloop_test_listed_total", kind="counter", documentation="A.", labels=("a",)),
    ]


def test_series_of_a_histogram_are_its_buckets_sum_and_count():
    family = Family(name="x_seconds", kind="histogram", documentation="")

    assert family.series == ("x_seconds_bucket", "x_seconds_sum", "x_seconds_count")
