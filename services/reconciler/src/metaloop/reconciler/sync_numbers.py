"""What is counted of the syncs of each controller, and exported.

The names `controller_runtime_*` are those of controller-runtime, so that the dashboards of other controllers show them.
A controller whose syncs ended an hour ago is forgotten: it is gone, or another reconciler has its parents.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from metaloop.common.distribution import Distribution
from metaloop.common.job import ControllerId
from metaloop.common.machine import monotonic
from metaloop.common.report import Result
from metaloop.common.telemetry import fields, metrics
from metaloop.common.telemetry.metrics import Family, Kind, Numbers

KEPT_SECONDS: Final = 3600.0

_RESULTS: Final[Mapping[Result, str]] = {"done": "success", "retry": "error", "rejected": "error", "throttled": "requeue_after"}
"""What controller-runtime calls each result of a sync."""


@dataclass(slots=True, kw_only=True)
class ControllerSyncs:
    """What happened in the syncs of one controller."""

    results: Counter[Result] = field(default_factory=Counter[Result])
    seconds: Distribution = field(default_factory=Distribution)
    change_to_hook: Distribution = field(default_factory=Distribution)
    """From a change of an object until the hook was called because of it."""
    writes: Counter[str] = field(default_factory=Counter[str])
    """Writes to the cluster, by the kind of action."""
    crashes: int = 0
    ended_at: float = 0.0
    """When the last one ended."""


Read: TypeAlias = Callable[[ControllerSyncs], Numbers]
"""The numbers of a family for one controller, by its further labels."""


class SyncNumbers:
    """What happened in the syncs of this process, by controller."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._controllers: dict[ControllerId, ControllerSyncs] = {}

    def of(self, controller: ControllerId) -> ControllerSyncs:
        """The numbers of a controller, of which a sync ends now."""
        found = self._controllers.get(controller)
        if found is None:
            found = self._controllers[controller] = ControllerSyncs()
        found.ended_at = self._clock()
        return found

    def current(self) -> Iterator[tuple[str, ControllerSyncs]]:
        """The numbers of each controller whose last sync has not been over for long. The others are forgotten."""
        kept_since = self._clock() - KEPT_SECONDS
        self._controllers = {controller: syncs for controller, syncs in self._controllers.items() if syncs.ended_at >= kept_since}
        return ((str(controller), syncs) for controller, syncs in self._controllers.items())

    def export(self) -> None:
        """Export all numbers."""
        for family, read in _FAMILIES:
            metrics.export(family, lambda read=read: _numbers(self, read))

    def export_workers(self, in_flight: Callable[[], Mapping[ControllerId, int]], *, most: int) -> None:
        """Export how many syncs of each controller are `in_flight`, of `most` that one controller could have."""
        active = _family("controller_runtime_active_workers", "gauge", "Parents of a controller that this reconciler has in hand.")
        metrics.export(active, lambda: {(name,): count for name, count in self._with_idle(in_flight()).items()})
        limit = _family("controller_runtime_max_concurrent_reconciles", "gauge", "How many this reconciler could have in hand.")
        metrics.export(limit, lambda: dict.fromkeys(((name,) for name in self._with_idle(in_flight())), most))

    def _with_idle(self, in_flight: Mapping[ControllerId, int]) -> dict[str, int]:
        """The numbers in flight, and 0 for each controller that has none now."""
        return {name: 0 for name, _ in self.current()} | {str(controller): count for controller, count in in_flight.items()}


def _numbers(numbers: SyncNumbers, read: Read) -> Numbers:
    return {(controller, *labels): number for controller, syncs in numbers.current() for labels, number in read(syncs).items()}


def _family(name: str, kind: Kind, documentation: str, *labels: str) -> Family:
    return Family(name=name, kind=kind, documentation=documentation, labels=(fields.CONTROLLER, *labels))


def _errors(syncs: ControllerSyncs) -> Numbers:
    return {(): sum(count for result, count in syncs.results.items() if _RESULTS[result] == "error")}


def _reconciles(syncs: ControllerSyncs) -> Numbers:
    by_result: Counter[str] = Counter()
    for result, count in syncs.results.items():
        by_result[_RESULTS[result]] += count
    return {(result,): count for result, count in by_result.items()}


_FAMILIES: Final[tuple[tuple[Family, Read], ...]] = (
    (
        _family("metaloop_syncs_total", "counter", "Syncs that ended.", fields.OUTCOME),
        lambda syncs: {(result,): count for result, count in syncs.results.items()},
    ),
    (
        _family("metaloop_sync_seconds", "histogram", "How long syncs took, their hooks included."),
        lambda syncs: {(): syncs.seconds},
    ),
    (
        _family("metaloop_sync_writes_total", "counter", "Writes to the cluster that syncs carried out.", "action"),
        lambda syncs: {(action,): count for action, count in syncs.writes.items()},
    ),
    (
        _family("metaloop_change_to_hook_seconds", "histogram", "From a change of an object until the hook was called because of it."),
        lambda syncs: {(): syncs.change_to_hook},
    ),
    (_family("controller_runtime_reconcile_total", "counter", "Syncs that ended, by result.", "result"), _reconciles),
    (_family("controller_runtime_reconcile_errors_total", "counter", "Syncs that failed."), _errors),
    (
        _family("controller_runtime_terminal_reconcile_errors_total", "counter", "Syncs that failed and are not retried soon."),
        lambda syncs: {(): syncs.results["rejected"]},
    ),
    (
        _family("controller_runtime_reconcile_panics_total", "counter", "Syncs that ended by an error that nobody foresaw."),
        lambda syncs: {(): syncs.crashes},
    ),
    (
        _family("controller_runtime_reconcile_time_seconds", "histogram", "How long syncs took, their hooks included."),
        lambda syncs: {(): syncs.seconds},
    ),
)

numbers: Final = SyncNumbers()
"""Those of all syncs of this process."""
numbers.export()
