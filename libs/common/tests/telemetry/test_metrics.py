"""Gauges whose values are read when they are scraped."""

from metaloop.common.telemetry import metrics


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
