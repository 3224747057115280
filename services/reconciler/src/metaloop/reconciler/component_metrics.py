"""Counts passes over components: how they ended, and how long it took until components were ready.

What is counted is what this reconciler did. Which components are in which state at the moment, their own status says.
"""

from functools import lru_cache

from metaloop.common.telemetry import fields, metrics
from metaloop.reconciler.core.steps import CountPass

_passes = metrics.counter(
    "metaloop_component_passes",
    "Passes over components, by the state and reason that they ended with.",
    (fields.CONTROLLER, "state", "reason"),
)
_changes = metrics.counter("metaloop_component_state_changes", "Changes of components to a state.", (fields.CONTROLLER, "state"))
_seconds = metrics.histogram(
    "metaloop_component_ready_seconds", "How long it took from the first object that was not ready until all were.", (fields.CONTROLLER,)
)

_CACHED_SERIES = 4096
_passes_of = lru_cache(_CACHED_SERIES)(_passes.labels)
_changes_of = lru_cache(_CACHED_SERIES)(_changes.labels)
_seconds_of = lru_cache(_CACHED_SERIES)(_seconds.labels)


def count_pass(step: CountPass, *, controller: str) -> None:
    """Count one pass over a component of this controller."""
    _passes_of(controller, step.state, step.reason).inc()
    if step.is_change:
        _changes_of(controller, step.state).inc()
    if step.ready_after_seconds is not None:
        _seconds_of(controller).observe(step.ready_after_seconds)
