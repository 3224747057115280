"""Numbers of each controller for metrics and debug views: one for each controller, however many parents it has."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from metaloop.common.job import ControllerId
from metaloop.common.telemetry import fields, metrics
from metaloop.watcher.core.health import ControllerStats
from metaloop.watcher.route import Router
from metaloop.watcher.workqueue import WorkQueue

Numbers: TypeAlias = Mapping[ControllerId, int]


@dataclass(frozen=True, slots=True)
class ControllerNumber:
    """One number of each controller."""

    name: str
    """In camel case, as debug views show it."""
    metric: str
    documentation: str
    read: Callable[[], Numbers]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerNumbers:
    """What can be counted of each controller."""

    router: Router
    queue: WorkQueue

    @property
    def of_parents(self) -> Sequence[ControllerNumber]:
        """What the status of a controller says as well."""
        return (
            ControllerNumber("parents", "parents", "Parents.", lambda: self._of_stats(lambda stats: stats.parents)),
            ControllerNumber(
                "failingParents",
                "failing_parents",
                "Parents whose last sync failed, or that of a part of theirs.",
                lambda: self._of_stats(lambda stats: stats.failing_parents),
            ),
        )

    @property
    def of_keys(self) -> Sequence[ControllerNumber]:
        """The parts of parents, and the keys of the queue."""
        return (
            ControllerNumber("parts", "parts", "Parts of parents, such as the inputs of map controllers.", self.router.parts),
            ControllerNumber("failingParts", "failing_parts", "Parts whose last sync failed.", self._failing_parts),
            ControllerNumber(
                "unsynced",
                "unsynced_keys",
                "Keys that have not been synced since the controller started.",
                lambda: self._of_stats(lambda stats: len(stats.unsynced)),
            ),
            ControllerNumber("waiting", "waiting_keys", "Keys that wait for their turn.", self.queue.waiting_by_controller),
            ControllerNumber(
                "inFlight", "in_flight_keys", "Keys that are offered to workers or held by one.", self.queue.in_flight_by_controller
            ),
        )

    def export(self) -> None:
        """Export all numbers, each as a gauge with the controller as its label."""
        for number in (*self.of_parents, *self.of_keys):
            name = f"metaloop_controller_{number.metric}"
            metrics.observed_by(name, number.documentation, fields.CONTROLLER, lambda read=number.read: _labelled(read()))

    def _of_stats(self, count: Callable[[ControllerStats], int]) -> Numbers:
        return {controller: count(stats) for controller, stats in self.router.stats.items()}

    def _failing_parts(self) -> Numbers:
        return {controller: self.router.stats[controller].failing_parts for controller in self.router.parts()}


def _labelled(numbers: Numbers) -> dict[str, float]:
    return {str(controller): number for controller, number in numbers.items()}
