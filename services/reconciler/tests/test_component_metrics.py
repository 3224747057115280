"""What is counted of passes over components."""

from metaloop.common.telemetry import metrics
from metaloop.reconciler.component_metrics import count_pass
from metaloop.reconciler.core.steps import CountPass

CONTROLLER = "ComponentController/of-test-component-metrics"


def value(name: str, **labels: str) -> float | None:
    """The present value of a series of the controller."""
    return metrics.registry.get_sample_value(name, {"controller": CONTROLLER, **labels})


def test_passes_changes_and_times_are_counted():
    count_pass(CountPass(state="Processing", reason="Processing", is_change=False), controller=CONTROLLER)
    count_pass(CountPass(state="Processing", reason="Processing", is_change=False), controller=CONTROLLER)
    count_pass(CountPass(state="Ready", reason="Ready", is_change=True, ready_after_seconds=3.0), controller=CONTROLLER)

    assert value("metaloop_component_passes_total", state="Processing", reason="Processing") == 2
    assert value("metaloop_component_state_changes_total", state="Ready") == 1
    assert value("metaloop_component_state_changes_total", state="Processing") is None
    assert (value("metaloop_component_ready_seconds_count"), value("metaloop_component_ready_seconds_sum")) == (1, 3.0)
