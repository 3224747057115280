"""What is counted of the syncs of each controller, and under which names it is exported."""

import pytest

from metaloop.common.job import ControllerId
from metaloop.common.telemetry import metrics
from metaloop.common.testing.clock import FakeClock
from metaloop.reconciler.sync_numbers import KEPT_SECONDS, SyncNumbers

THINGS = ControllerId("CompositeController", "things")
OTHERS = ControllerId("DecoratorController", "others")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def numbers(clock: FakeClock) -> SyncNumbers:
    """Numbers that are exported."""
    numbers = SyncNumbers(clock=clock)
    numbers.export()
    return numbers


def value(name: str, **labels: str) -> float | None:
    """An exported sample of the controller; None where there is none."""
    return metrics.registry.get_sample_value(name, {"controller": str(THINGS), **labels})


def test_results_are_exported_in_our_words_and_in_those_of_controller_runtime(numbers: SyncNumbers):
    numbers.of(THINGS).results.update(done=5, retry=2, rejected=1, throttled=3)

    ours = {outcome: value("metaloop_syncs_total", outcome=outcome) for outcome in ("done", "retry", "rejected", "throttled")}
    theirs = {result: value("controller_runtime_reconcile_total", result=result) for result in ("success", "error", "requeue_after")}
    assert ours == {"done": 5, "retry": 2, "rejected": 1, "throttled": 3}
    assert theirs == {"success": 5, "error": 3, "requeue_after": 3}


def test_failures_are_errors_and_rejections_terminal_ones(numbers: SyncNumbers):
    numbers.of(THINGS).results.update(done=5, retry=2, rejected=1, throttled=3)

    assert value("controller_runtime_reconcile_errors_total") == 3
    assert value("controller_runtime_terminal_reconcile_errors_total") == 1


def test_duration_is_exported_under_both_names(numbers: SyncNumbers):
    numbers.of(THINGS).seconds.observe(0.3)

    for name in ("metaloop_sync_seconds", "controller_runtime_reconcile_time_seconds"):
        assert (value(f"{name}_count"), value(f"{name}_sum")) == (1, 0.3)


def test_writes_crashes_and_latency_are_exported(numbers: SyncNumbers):
    syncs = numbers.of(THINGS)
    syncs.writes.update(CreateChild=3)
    syncs.crashes += 1
    syncs.change_to_hook.observe(0.02)

    assert value("metaloop_sync_writes_total", action="CreateChild") == 3
    assert value("controller_runtime_reconcile_panics_total") == 1
    assert value("metaloop_change_to_hook_seconds_sum") == 0.02


def test_controller_without_syncs_for_long_is_forgotten(numbers: SyncNumbers, clock: FakeClock):
    numbers.of(OTHERS).results["done"] += 1
    clock.now += KEPT_SECONDS / 2
    numbers.of(THINGS).results["done"] += 1
    clock.now += KEPT_SECONDS / 2 + 1

    assert [name for name, _ in numbers.current()] == [str(THINGS)]
    assert value("metaloop_syncs_total", outcome="done") == 1


def test_controller_that_comes_back_begins_at_zero(numbers: SyncNumbers, clock: FakeClock):
    numbers.of(THINGS).results["done"] += 7
    clock.now += KEPT_SECONDS + 1
    assert not [*numbers.current()]

    numbers.of(THINGS).results["done"] += 1

    assert value("metaloop_syncs_total", outcome="done") == 1


def test_active_workers_are_exported_also_of_a_controller_that_has_none(numbers: SyncNumbers):
    numbers.of(THINGS)
    numbers.export_workers(lambda: {OTHERS: 4}, most=256)

    active = {
        str(each): metrics.registry.get_sample_value("controller_runtime_active_workers", {"controller": str(each)})
        for each in (THINGS, OTHERS)
    }
    assert active == {str(THINGS): 0, str(OTHERS): 4}
    assert value("controller_runtime_max_concurrent_reconciles") == 256
